// IndexEnv, IndexTxn, IndexCursor: LMDB's handles, owned, with its errors as Results. The only
// types that touch lmdb.h, for the index_* files alone.
//
// Errors: kCorrupt where LMDB found its pages damaged, kNoSpace, kIo, else kInternal.
#pragma once

#include <lmdb.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
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

 private:
  IndexEnv() = default;
  Status OpenTables(bool create);

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
  // The views live until the transaction ends.
  Result<std::optional<std::string_view>> Get(IndexTable table, std::string_view key);
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
  struct Entry {
    std::string_view key;
    std::string_view value;
  };
  static Result<IndexCursor> Open(const IndexTxn& txn, MDB_dbi table);
  IndexCursor(IndexCursor&& other) noexcept : cursor_(std::exchange(other.cursor_, nullptr)) {}
  IndexCursor& operator=(IndexCursor&&) = delete;
  ~IndexCursor();

  // nullopt behind the last entry.
  Result<std::optional<Entry>> Next() { return Move(MDB_NEXT, {}); }
  // The first entry whose key is not below `key`.
  Result<std::optional<Entry>> Seek(std::string_view key) { return Move(MDB_SET_RANGE, key); }
  // The entry stood on; Next goes on behind it.
  Status DeleteCurrent();

 private:
  explicit IndexCursor(MDB_cursor* cursor) : cursor_(cursor) {}
  Result<std::optional<Entry>> Move(MDB_cursor_op op, std::string_view key);
  MDB_cursor* cursor_;
};

}  // namespace dartfs::core
