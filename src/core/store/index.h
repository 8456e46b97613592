// Index: what the store remembers over restarts: objects, chunks, checksums, names (FORMAT.md).
//
// Reads: any thread, local disk only (pages of a memory map). Commit and Close: one thread at a
// time. Records that do not decode read as absent and are counted. Where LMDB itself reports
// damage, or the disk can't give a page, the index is *damaged* from then on: it is vetted, hence
// rebuilt, at the next start. After the latter (IndexEnv's *lost*) all records read as absent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/store/index_phase.h"
#include "core/store/index_record.h"

namespace dartfs::core {

struct IndexOptions {
  std::string dir;
  uint64_t map_bytes = uint64_t{64} << 30;  // virtual: how far the index may grow
  uint64_t max_names = 1'000'000;           // in each name table; beyond, others make room
};

// One transaction. Order: rekeys, erased objects, all else; later entries of a list win.
struct IndexBatch {
  struct Rekey {
    StoreKey from;
    StoreKey to;  // what stood there is erased
  };
  struct Sums {
    StoreKey object;
    uint64_t block = 0;
    std::vector<uint64_t> sums;  // empty: deleted
  };
  struct Name {
    NameTable table = NameTable::kNames;
    std::string name;
    std::optional<std::string> value;  // nullopt: deleted
  };
  std::vector<Rekey> rekeys;
  std::vector<StoreKey> erased_objects;  // with all their chunks and checksums
  std::vector<std::pair<StoreKey, ObjectMeta>> objects;
  std::vector<std::pair<ChunkKey, ChunkRecord>> chunks;  // without blocks or pin: deleted
  std::vector<Sums> sums;
  std::vector<Name> names;

  bool empty() const;
};

class IndexEnv;

class Index {
 public:
  using Chunks = std::vector<std::pair<ChunkKey, ChunkRecord>>;

  // Vets, opens, and reads all chunk records in the order of their keys. Sets a hopeless index
  // aside as <dir>.bad-1 and begins an empty one. What is no fault of the index (address space,
  // descriptors, permissions, no space to rebuild it) is an error, and leaves it as it is.
  static Result<std::unique_ptr<Index>> Open(const IndexOptions& options, Chunks* chunks);
  ~Index();

  std::optional<ObjectMeta> GetObject(const StoreKey& key);
  std::optional<std::vector<uint64_t>> GetSums(const StoreKey& key, uint64_t block);
  std::optional<std::string> GetName(NameTable table, std::string_view name);

  // Durable once it succeeds; nothing of it happened when it fails.
  Status Commit(const IndexBatch& batch);
  // After the last Commit. Sealed unless damaged, so that the next start need not vet.
  Status Close();

  // Whether the last run ended by Close.
  bool was_clean() const { return was_clean_; }
  uint64_t commit_seq() const { return commit_seq_.load(std::memory_order_relaxed); }
  uint64_t corrupt_records() const { return corrupt_records_.load(std::memory_order_relaxed); }
  bool damaged() const { return damaged_.load(std::memory_order_relaxed); }
  // For the user: what it is, and what to do.
  std::string DamageReason() const;

 private:
  struct State;
  Index(IndexOptions options, std::unique_ptr<State> state);

  static Result<std::unique_ptr<Index>> OpenVetted(const IndexOptions& options,
                                                   const IndexPhase::Deaths& deaths,
                                                   Chunks* chunks);
  static Result<std::unique_ptr<Index>> OpenPrepared(const IndexOptions& options, Chunks* chunks);
  Status Scan(Chunks* chunks);
  Status Apply(const IndexBatch& batch);
  std::optional<std::string> Get(IndexTable table, std::string_view key);
  Status NoteDamage(Status status);

  const IndexOptions options_;
  const std::unique_ptr<State> state_;
  bool was_clean_ = false;
  std::atomic<uint64_t> commit_seq_ = 0;
  std::atomic<uint64_t> corrupt_records_ = 0;
  std::atomic<bool> damaged_ = false;
  std::atomic<bool> unreadable_ = false;  // damaged, as far as is known, by the disk alone
};

}  // namespace dartfs::core
