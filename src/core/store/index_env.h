// IndexEnv, IndexTxn, IndexCursor: LMDB's handles, owned, with its errors as Results. The only
// types that touch lmdb.h, for the index_* files alone.
//
// Errors: kCorrupt where LMDB found its pages damaged, kNoSpace, kIo, else kInternal. In kReadWrite
// every call is guarded (index_guard.h): where a page can't be read or LMDB's assertion fails, the
// environment is lost (kIo, kCorrupt); LMDB is not called again, and its handles leak on purpose.
#pragma once

#include <lmdb.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/store/index_guard.h"
#include "core/store/index_record.h"

namespace dartfs::core {

Error LmdbError(int code, const std::string& what);

struct IndexEnvOptions {
  std::string dir;
  uint64_t map_bytes = 0;
  enum class Mode {
    kReadWrite,  // creates the tables
    kInspect,    // read-only, without LMDB's lock file: for the process that only looks
    kBuild,      // read-write without syncs: for a copy nobody uses yet
  } mode = Mode::kReadWrite;
};

class IndexEnv {
 public:
  static Result<std::unique_ptr<IndexEnv>> Open(const IndexEnvOptions& options);
  ~IndexEnv();
  IndexEnv(const IndexEnv&) = delete;
  IndexEnv& operator=(const IndexEnv&) = delete;

  MDB_env* get() const { return env_; }
  MDB_dbi table(IndexTable table) const { return tables_[static_cast<size_t>(table)]; }
  // kInspect: not every table need be there.
  bool has(IndexTable table) const { return present_[static_cast<size_t>(table)]; }
  Status Sync();

  // Runs LMDB calls, guarded where the mode is; what they may hold: index_guard.h. LMDB's code.
  template <typename Calls>
  int Call(Calls calls) const {
    if (!guarded_) return calls();
    int code = LostCode();
    if (code != 0) return code;
    auto body = [&code, &calls] { code = calls(); };
    const GuardEnd end = RunGuarded(maps_, body);
    return end == GuardEnd::kDone ? code : Lose(end);
  }
  // Copies what LMDB found, by further calls. The value's last byte has been touched (Touch).
  int Copy(const MDB_val& from, std::string* to) const;
  // Within calls: whether all of it can be there.
  int Touch(const MDB_val& val) const;
  bool guarded() const { return guarded_; }
  bool lost() const { return lost_.load(std::memory_order_relaxed) != GuardEnd::kDone; }

 private:
  explicit IndexEnv(bool guarded) : guarded_(guarded) {}
  Status OpenTables(bool create);
  int LostCode() const;
  int Lose(GuardEnd end) const;

  const bool guarded_;
  GuardedMaps maps_;
  mutable std::atomic<GuardEnd> lost_ = GuardEnd::kDone;
  MDB_env* env_ = nullptr;
  std::array<MDB_dbi, kIndexTables> tables_ = {};
  std::array<bool, kIndexTables> present_ = {};
};

// Aborted when dropped without Commit. A writing one belongs to the thread that began it.
class IndexTxn {
 public:
  enum class Kind { kRead, kWrite };
  static Result<IndexTxn> Begin(const IndexEnv& env, Kind kind);
  IndexTxn(IndexTxn&& other) noexcept
      : env_(other.env_), txn_(std::exchange(other.txn_, nullptr)) {}
  IndexTxn& operator=(IndexTxn&&) = delete;
  ~IndexTxn();

  MDB_txn* get() const { return txn_; }
  const IndexEnv& env() const { return *env_; }
  Result<std::optional<std::string>> Get(IndexTable table, std::string_view key);
  Result<uint64_t> CountEntries(IndexTable table);
  // Seals the payload under its key.
  Status Put(IndexTable table, std::string_view key, std::string_view payload);
  // Behind all keys of the table; the value is sealed already.
  Status AppendSealed(IndexTable table, std::string_view key, std::string_view value);
  // Absent is fine.
  Status Delete(IndexTable table, std::string_view key);
  Status Commit();

 private:
  IndexTxn(const IndexEnv* env, MDB_txn* txn) : env_(env), txn_(txn) {}
  const IndexEnv* env_;
  MDB_txn* txn_;
};

class IndexCursor {
 public:
  // Views of the map, or of the cursor's own copy where the environment is guarded: until the next
  // move.
  struct Entry {
    std::string_view key;
    std::string_view value;
  };
  static Result<IndexCursor> Open(const IndexTxn& txn, MDB_dbi table);
  IndexCursor(IndexCursor&& other) noexcept
      : env_(other.env_), cursor_(std::exchange(other.cursor_, nullptr)) {}
  IndexCursor& operator=(IndexCursor&&) = delete;
  ~IndexCursor();

  // nullopt behind the last entry.
  Result<std::optional<Entry>> Next() { return Move(MDB_NEXT, {}); }
  // The first entry whose key is not below `key`.
  Result<std::optional<Entry>> Seek(std::string_view key) { return Move(MDB_SET_RANGE, key); }
  // The entry stood on; Next goes on behind it.
  Status DeleteCurrent();

 private:
  IndexCursor(const IndexEnv* env, MDB_cursor* cursor) : env_(env), cursor_(cursor) {}
  Result<std::optional<Entry>> Move(MDB_cursor_op op, std::string_view key);

  const IndexEnv* env_;
  MDB_cursor* cursor_;
  std::string key_;
  std::string value_;
};

}  // namespace dartfs::core
