// StoreImpl: the store put together of its parts. What each does, and the order of things, stands
// with them: BlockWriter, BlockReader, Committer, Orphans over StoreCore. Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/store/block_reader.h"
#include "core/store/block_writer.h"
#include "core/store/committer.h"
#include "core/store/object_verifier.h"
#include "core/store/orphans.h"
#include "core/store/store.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class StoreImpl final : public Store {
 public:
  // The core's index is open, and `chunks` is what it held.
  StoreImpl(std::shared_ptr<StoreCore> core, const Index::Chunks& chunks);
  ~StoreImpl() override { Stop(); }

  Result<std::shared_ptr<StoredObject>> OpenObject(const StoreKey& key,
                                                   const ObjectMeta& meta) override;
  std::optional<ObjectMeta> FindObject(const StoreKey& key) override;
  BlockPin Pin(const std::shared_ptr<StoredObject>& object, uint64_t block) override;
  uint64_t PresentBlocks(const StoredObject& object) override;
  std::vector<bool> PresentMap(const StoredObject& object) override;
  bool TryRead(const BlockPin& pin, uint64_t offset, std::span<std::byte> into) override;
  std::optional<FileBytes> FindCached(const BlockPin& pin, uint64_t offset,
                                      uint64_t length) override;
  void Read(BlockPin pin, uint64_t offset, std::span<std::byte> into, IoDone done) override;
  void Write(std::shared_ptr<StoredObject> object, uint64_t block,
             std::shared_ptr<const AlignedBuffer> bytes, IoDone done,
             WriteOptions options = {}) override;
  Status DropObject(const std::shared_ptr<StoredObject>& object) override;
  Status Rekey(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
               const ObjectMeta& meta) override;
  LendState Lendable(const StoredObject& object) override;
  Result<FileLoan> Lend(const std::shared_ptr<StoredObject>& object) override;
  Result<VerifyReport> Verify(const std::shared_ptr<StoredObject>& object,
                              const std::function<bool()>& go_on) override;
  void TouchUse(const std::shared_ptr<StoredObject>& object) override;
  Result<uint64_t> Evict(const std::shared_ptr<StoredObject>& object) override;
  Status SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned) override;
  bool IsPinned(const StoredObject& object) override;
  void SetBypass(bool on) override;
  void SetPlacement(const std::shared_ptr<StoredObject>& object, uint64_t chunk,
                    Placement placement) override;
  void PutName(NameTable table, std::string_view name, std::string_view value) override;
  std::optional<std::string> GetName(NameTable table, std::string_view name) override;
  void DeleteName(NameTable table, std::string_view name) override;
  Status Flush() override;
  StoreStats Stats() override;
  void Stop() override EXCLUDES(stop_mu_);

 private:
  static void Load(StoreCore& core, const Index::Chunks& chunks);
  // Lent files of which blocks are lost can't be filled: they go, and with them what is left.
  void DropBrokenLent(const Index::Chunks& chunks);
  // Gives the object the meta it is opened with; false where the record is of something else.
  bool Adopt(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
             const ObjectMeta& meta);

  bool IsNeverLent(const StoredObject& object) const;
  // Whether a sync or a commit had better not be waited for now.
  bool DiskRefuses();

  // Of objects that were opened and that nobody has open any more, all but a number are trimmed.
  void TrimIdle(const StoreKey& opened) EXCLUDES(opened_mu_);

  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;
  BlockWriter writer_;
  BlockReader reader_;
  ObjectVerifier verifier_;
  Orphans orphans_;

  Mutex opened_mu_;                                     // a leaf
  std::deque<StoreKey> opened_ GUARDED_BY(opened_mu_);  // in the order of their opening

  Mutex stop_mu_;  // held for the whole of Stop
  bool stopped_ GUARDED_BY(stop_mu_) = false;
};

}  // namespace dartfs::core
