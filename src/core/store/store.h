// Store: the persistent block cache in one directory (DESIGN.md section 6).
//
//   <dir>/objects/ab/<30 hex>   sparse file per object, block i at i x block size
//   <dir>/index/                LMDB: objects, chunks, checksums, names, urls (FORMAT.md)
//   <dir>/lock, version, CACHEDIR.TAG
//
// Order: write completed -> present; fdatasync in batches -> records committed (a failed sync drops
// the blocks); record deleted and committed -> hole punched or file unlinked. Granules are checked
// against their XXH3-64 the first time they are used after a start; one that fails drops its block,
// is counted, and the read ends with kCorrupt (a miss for the caller, never an error for a reader).
// Anything the disk refuses (ENOSPC, EIO) puts the store in bypass: writes end with kNoSpace, reads
// of what is held go on; a retry now and then ends it.
//
// Thread-safe. "Blocking" means local disk only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/grid.h"
#include "core/base/identity.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/io/disk_io.h"
#include "core/store/file_loan.h"
#include "core/store/store_options.h"

namespace dartfs::core {

// What the index remembers of an object version. `kind`, `id`, `version` are compared in full when
// a record is opened (the key is only a hash).
struct ObjectMeta {
  char kind = 'u';             // 'u' local ID, 'd' digest (with origin part while unverified)
  std::string id;              // IDENTITY.md's ID, origin part included where it belongs to the key
  std::string version;         // IDENTITY.md's version text
  uint64_t size = 0;           // bytes
  std::string etag;            // as sent, empty when absent
  int64_t last_modified = -1;  // seconds since the epoch, -1 when absent
  std::string content_type;
  bool volatile_version = false;  // unversioned: forgotten at the next start
  bool verified = false;          // the whole object matched its digest
};

// Bytes of one name in `names` (directory listings) and `urls` (what a URL was last known to be):
// opaque to the store, checksummed, durable with the next commit.
enum class NameTable : uint8_t { kNames, kUrls };

class StoredObject;  // an open object: file descriptor, block states, checksums loaded so far

// Keeps a present block from being evicted; move-only; cheap.
class BlockPin {
 public:
  BlockPin() = default;
  BlockPin(BlockPin&&) noexcept;
  BlockPin& operator=(BlockPin&&) noexcept;
  ~BlockPin();
  explicit operator bool() const { return object_ != nullptr; }
  uint64_t block() const { return block_; }
  const std::shared_ptr<StoredObject>& object() const { return object_; }

 private:
  friend class Store;
  friend class StoreImpl;
  BlockPin(std::shared_ptr<StoredObject> object, uint64_t block);
  std::shared_ptr<StoredObject> object_;
  uint64_t block_ = 0;
};

// Bytes of an open file.
struct FileBytes {
  int fd = -1;          // open while `keep` is held
  uint64_t offset = 0;  // of the first byte, in the file
  std::shared_ptr<const void> keep;
};

class Store {
 public:
  static constexpr Duration kWithheld = std::chrono::seconds(5);

  virtual ~Store() = default;

  // Creates the directory (0700) where it is absent; takes the lock. Errors: kBusy (locked by a
  // live node; the context names its PID), kUnsupported (another format version; NFS, CIFS or FUSE
  // below), kRefused (another user's, links in it, or neither empty nor a cache), kIo, kNoSpace. An
  // index that can't be opened, or during whose opening two starts in a row died, is set aside
  // (index.bad-<n>) and the cache begins empty; what else keeps it from being opened is an error,
  // and leaves it as it is. Blocking. `io` and `scheduler` outlive the store.
  static Result<std::unique_ptr<Store>> Open(StoreOptions options, DiskIo& io,
                                             Scheduler& scheduler);

  // Finds the object or makes its record. The key is derived by the caller (identity.h). A record
  // of the same key with another kind, id, version or size is dropped first. Of the rest of the
  // meta the caller's is kept, but `verified` stays once it is set. Durable with the first block.
  // Blocking.
  virtual Result<std::shared_ptr<StoredObject>> OpenObject(const StoreKey& key,
                                                           const ObjectMeta& meta) = 0;

  // What the index remembers of the key's object, whether or not it has blocks here; nullopt where
  // there is none. Blocking.
  virtual std::optional<ObjectMeta> FindObject(const StoreKey& key) {
    (void)key;
    return std::nullopt;
  }

  // The block, pinned, when it is present and not withheld (Read); else an empty pin. Touches its
  // chunk's time of use. No I/O.
  virtual BlockPin Pin(const std::shared_ptr<StoredObject>& object, uint64_t block) = 0;
  // How many blocks of the object are present. No I/O.
  virtual uint64_t PresentBlocks(const StoredObject& object) = 0;
  // Bit i: block i is present (for `explain`).
  virtual std::vector<bool> PresentMap(const StoredObject& object) = 0;

  // Copies bytes [offset, offset + into.size()) of the pinned block if that needs no waiting for
  // the disk and they are verified or can be verified now; false: use Read. Never copies unverified
  // bytes into a successful answer.
  virtual bool TryRead(const BlockPin& pin, uint64_t offset, std::span<std::byte> into) = 0;
  // Where bytes [offset, offset + length) of the pinned block lie in its file, if all of them have
  // been checked in this run and are in the page cache: they may be sent from there while the pin
  // is held. nullopt: use TryRead or Read. No I/O.
  virtual std::optional<FileBytes> FindCached(const BlockPin& pin, uint64_t offset,
                                              uint64_t length) {
    (void)pin, (void)offset, (void)length;
    return std::nullopt;
  }
  // The same through DiskIo; `into` lives until `done`, which runs on a DiskIo thread. kCancelled:
  // the store has stopped. After any other error Pin does not offer the block again at once, so
  // that whoever fetches it and asks again makes progress. It has been dropped (kCorrupt: lost or
  // damaged, or the pin is empty; kIo: the disk can't read it), or the whole object is withheld for
  // kWithheld, as its file can't be used at present (no descriptor, no permission, a full queue):
  // then it is kept, its blocks count as present, and writes of them end with kNoSpace.
  virtual void Read(BlockPin pin, uint64_t offset, std::span<std::byte> into, IoDone done) = 0;

  // Keeps a whole block: `bytes` holds exactly the block's length, immutable from now on. Evicts
  // others as the limit needs. `done` (DiskIo thread): success once the block is present and
  // readable; kNoSpace: not kept (bypass, larger than the limit, not admitted). Storing a present
  // block is a success that writes nothing.
  virtual void Write(std::shared_ptr<StoredObject> object, uint64_t block,
                     std::shared_ptr<const AlignedBuffer> bytes, IoDone done,
                     WriteOptions options = {}) = 0;

  // Forgets the object's blocks: record deleted and committed, then the file unlinked; descriptors
  // in use stay readable. For wrong digests, blocks of a mixed version. Blocking.
  virtual Status DropObject(const std::shared_ptr<StoredObject>& object) = 0;
  // Gives the object another key and meta (a digest that has been verified); its blocks stay.
  // Blocking.
  virtual Status Rekey(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
                       const ObjectMeta& meta) = 0;

  // Lending a complete object's file to whoever reads it past the store (file_loan.h). Lendable: no
  // I/O, cheap.
  virtual LendState Lendable(const StoredObject& object) = 0;
  // Marks the file lent, durably, after a sync that succeeded, the first time; nothing of it is
  // evicted while a loan lasts. kBusy: as Lendable says, the object has changed just now, or not
  // within `lend_patience`; kUnsupported: never of this one; else the disk's error. Blocking.
  virtual Result<FileLoan> Lend(const std::shared_ptr<StoredObject>& object) = 0;
  // Checks every granule that was not checked in this run against what the disk has, past the page
  // cache where that can be had. One runs at a time; those that wait have their turn in the order
  // of their asking. `go_on` is asked every MiB or so, and now and then while it waits; false ends
  // it early. kUnavailable: the file can't be opened at present. Blocking, for worker threads.
  virtual Result<VerifyReport> Verify(const std::shared_ptr<StoredObject>& object,
                                      const std::function<bool()>& go_on) = 0;
  // As if all of it had been read: reads of a lent file reach nobody.
  virtual void TouchUse(const std::shared_ptr<StoredObject>& object) = 0;

  // Evicts all of the object that can go now. How many bytes went. Blocking.
  virtual Result<uint64_t> Evict(const std::shared_ptr<StoredObject>& object) = 0;
  // The operator's pin: never evicted while it lasts, whatever of it is there; durable. Ends with
  // DropObject. kTooLarge when all pinned objects would pass three quarters of the limit;
  // kUnsupported: volatile objects. Blocking.
  virtual Status SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned) = 0;
  virtual bool IsPinned(const StoredObject& object) = 0;
  // By the operator: nothing is kept until it is taken back.
  virtual void SetBypass(bool on) = 0;
  // Of a chunk of the grid; kOwned where nothing was said. No I/O; recorded with the next commit.
  virtual void SetPlacement(const std::shared_ptr<StoredObject>& object, uint64_t chunk,
                            Placement placement) = 0;

  // Names are forgotten once the index turns out to be damaged, until the next start.
  virtual void PutName(NameTable table, std::string_view name, std::string_view value) = 0;
  virtual std::optional<std::string> GetName(NameTable table, std::string_view name) = 0;
  virtual void DeleteName(NameTable table, std::string_view name) = 0;

  // Makes everything present now durable (sync, commit). Blocking.
  virtual Status Flush() = 0;
  virtual StoreStats Stats() = 0;
  // Flush, then release the lock. Twice is fine.
  virtual void Stop() = 0;
};

// Facts of an open object, constant after opening unless Rekey'd.
const StoreKey& KeyOf(const StoredObject& object);
const ObjectMeta& MetaOf(const StoredObject& object);

}  // namespace dartfs::core
