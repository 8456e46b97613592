#include "core/store/index_env.h"

#include <cerrno>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr unsigned kMaxReaders = 1024;

MDB_val ToVal(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }

std::string_view ToView(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

unsigned FlagsOf(IndexEnvOptions::Mode mode) {
  switch (mode) {
    case IndexEnvOptions::Mode::kReadWrite:
      return MDB_NOTLS;
    case IndexEnvOptions::Mode::kInspect:
      return MDB_RDONLY | MDB_NOLOCK;
    case IndexEnvOptions::Mode::kBuild:
      return MDB_NOSYNC | MDB_NOLOCK;
  }
  return 0;
}

}  // namespace

Error LmdbError(int code, const std::string& what) {
  const std::string context = "index: " + what;
  if (code > 0) return ErrnoError(code, context);
  Code kind = Code::kInternal;
  switch (code) {
    case MDB_MAP_FULL:
      kind = Code::kNoSpace;
      break;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_BAD_TXN:
    case MDB_BAD_DBI:
    case MDB_BAD_VALSIZE:
    case MDB_NOTFOUND:
      kind = Code::kCorrupt;
      break;
    default:
      break;
  }
  return MakeError(kind, context + ": " + mdb_strerror(code));
}

Result<std::unique_ptr<IndexEnv>> IndexEnv::Open(const IndexEnvOptions& options) {
  std::unique_ptr<IndexEnv> env(new IndexEnv());
  int code = mdb_env_create(&env->env_);
  if (code != 0) return LmdbError(code, "mdb_env_create");
  mdb_env_set_maxdbs(env->env_, kIndexTables);
  mdb_env_set_maxreaders(env->env_, kMaxReaders);
  code = mdb_env_set_mapsize(env->env_, options.map_bytes);
  if (code != 0) return LmdbError(code, "mdb_env_set_mapsize");
  code = mdb_env_open(env->env_, options.dir.c_str(), FlagsOf(options.mode), 0600);
  if (code != 0) return LmdbError(code, "cannot open " + EscapeForeign(options.dir));
  TRY(env->OpenTables(options.mode != IndexEnvOptions::Mode::kInspect));
  return env;
}

IndexEnv::~IndexEnv() {
  if (env_ != nullptr) mdb_env_close(env_);
}

Status IndexEnv::OpenTables(bool create) {
  TRY_ASSIGN(IndexTxn txn,
             IndexTxn::Begin(*this, create ? IndexTxn::Kind::kWrite : IndexTxn::Kind::kRead));
  for (size_t i = 0; i < kIndexTables; ++i) {
    const char* const name = IndexTableName(static_cast<IndexTable>(i));
    const int code = mdb_dbi_open(txn.get(), name, create ? MDB_CREATE : 0, &tables_[i]);
    if (code == MDB_NOTFOUND && !create) continue;
    if (code != 0) return LmdbError(code, std::string("table ") + name);
    present_[i] = true;
    unsigned flags = 0;
    const int flags_code = mdb_dbi_flags(txn.get(), tables_[i], &flags);
    // A flipped flag bit would change how keys compare and values lie.
    if (flags_code != 0 || flags != 0) {
      return LmdbError(MDB_INCOMPATIBLE, std::string("table ") + name);
    }
  }
  return txn.Commit();
}

Status IndexEnv::Sync() {
  const int code = mdb_env_sync(env_, 1);
  if (code != 0) return LmdbError(code, "sync");
  return {};
}

Result<IndexTxn> IndexTxn::Begin(const IndexEnv& env, Kind kind) {
  MDB_txn* txn = nullptr;
  const int code = mdb_txn_begin(env.get(), nullptr, kind == Kind::kRead ? MDB_RDONLY : 0, &txn);
  if (code != 0) return LmdbError(code, "begin");
  return IndexTxn(&env, txn);
}

IndexTxn::~IndexTxn() {
  if (txn_ != nullptr) mdb_txn_abort(txn_);
}

Result<std::optional<std::string_view>> IndexTxn::Get(IndexTable table, std::string_view key) {
  MDB_val key_val = ToVal(key);
  MDB_val value = {};
  const int code = mdb_get(txn_, env_->table(table), &key_val, &value);
  if (code == MDB_NOTFOUND) return std::optional<std::string_view>();
  if (code != 0) return LmdbError(code, "get");
  return std::optional<std::string_view>(ToView(value));
}

Status IndexTxn::Put(IndexTable table, std::string_view key, std::string_view payload) {
  const std::string sealed = SealRecord(table, key, payload);
  MDB_val key_val = ToVal(key);
  MDB_val value = ToVal(sealed);
  const int code = mdb_put(txn_, env_->table(table), &key_val, &value, 0);
  if (code != 0) return LmdbError(code, "put");
  return {};
}

Status IndexTxn::AppendSealed(IndexTable table, std::string_view key, std::string_view value) {
  MDB_val key_val = ToVal(key);
  MDB_val value_val = ToVal(value);
  const int code = mdb_put(txn_, env_->table(table), &key_val, &value_val, MDB_APPEND);
  if (code != 0) return LmdbError(code, "append");
  return {};
}

Status IndexTxn::Delete(IndexTable table, std::string_view key) {
  MDB_val key_val = ToVal(key);
  const int code = mdb_del(txn_, env_->table(table), &key_val, nullptr);
  if (code != 0 && code != MDB_NOTFOUND) return LmdbError(code, "delete");
  return {};
}

Status IndexTxn::Commit() {
  const int code = mdb_txn_commit(std::exchange(txn_, nullptr));
  if (code != 0) return LmdbError(code, "commit");
  return {};
}

Result<IndexCursor> IndexCursor::Open(const IndexTxn& txn, MDB_dbi table) {
  MDB_cursor* cursor = nullptr;
  const int code = mdb_cursor_open(txn.get(), table, &cursor);
  if (code != 0) return LmdbError(code, "cursor");
  return IndexCursor(cursor);
}

IndexCursor::~IndexCursor() {
  if (cursor_ != nullptr) mdb_cursor_close(cursor_);
}

Result<std::optional<IndexCursor::Entry>> IndexCursor::Move(MDB_cursor_op op,
                                                            std::string_view key) {
  MDB_val key_val = ToVal(key);
  MDB_val value = {};
  const int code = mdb_cursor_get(cursor_, &key_val, &value, op);
  if (code == MDB_NOTFOUND) return std::optional<Entry>();
  if (code != 0) return LmdbError(code, "cursor");
  return std::optional<Entry>({ToView(key_val), ToView(value)});
}

Status IndexCursor::DeleteCurrent() {
  const int code = mdb_cursor_del(cursor_, 0);
  if (code != 0) return LmdbError(code, "delete");
  return {};
}

}  // namespace dartfs::core
