// BlockReader: bytes of present blocks, checked. Every granule is compared with its checksum the
// first time it is used in this run; so a read of part of an unchecked granule reads it whole. What
// fails is dropped at once and counted. Thread-safe; no thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "core/store/committer.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class BlockReader {
 public:
  BlockReader(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer)
      : core_(std::move(core)), committer_(std::move(committer)) {}

  // As those of Store.
  bool TryRead(const BlockPin& pin, uint64_t offset, std::span<std::byte> into);
  std::optional<FileBytes> FindCached(const BlockPin& pin, uint64_t offset, uint64_t length);
  void Read(BlockPin pin, uint64_t offset, std::span<std::byte> into, IoDone done);

 private:
  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;
};

}  // namespace dartfs::core
