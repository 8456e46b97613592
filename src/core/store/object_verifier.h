// ObjectVerifier: checks an object's granules against what the disk has, one block after another,
// with O_DIRECT reads where the file system has them, so that the page cache is left alone; else
// buffered, and what was read is given back to the kernel. One runs at a time. Thread-safe; works
// on the caller's thread and waits there for DiskIo.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/store/committer.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class ObjectVerifier {
 public:
  ObjectVerifier(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer)
      : core_(std::move(core)), committer_(std::move(committer)) {}

  // As Store::Verify.
  Result<VerifyReport> Verify(const std::shared_ptr<StoredObject>& object,
                              const std::function<bool()>& go_on);

 private:
  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;
  std::atomic<bool> running_ = false;
};

}  // namespace dartfs::core
