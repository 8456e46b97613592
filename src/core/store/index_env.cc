#include "core/store/index_env.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr unsigned kMaxReaders = 1024;
// Beside LMDB's own codes, which are errno's and -30799 and up.
constexpr int kLostByFault = -1;
constexpr int kLostByAssertion = -2;

// LMDB aborts when this returns.
void OnAssertion(MDB_env* /*env*/, const char* /*message*/) { LeaveGuardByAssertion(); }

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
  if (code == kLostByFault) return ErrnoError(EIO, context + ": its file cannot be read");
  if (code == kLostByAssertion) return MakeError(Code::kCorrupt, context + ": damaged pages");
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
  const bool guarded = options.mode == IndexEnvOptions::Mode::kReadWrite;
  std::unique_ptr<IndexEnv> env(new IndexEnv(guarded));
  int code = mdb_env_create(&env->env_);
  if (code != 0) return LmdbError(code, "mdb_env_create");
  mdb_env_set_maxdbs(env->env_, kIndexTables);
  mdb_env_set_maxreaders(env->env_, kMaxReaders);
  if (guarded) mdb_env_set_assert(env->env_, OnAssertion);
  code = mdb_env_set_mapsize(env->env_, options.map_bytes);
  if (code != 0) return LmdbError(code, "mdb_env_set_mapsize");
  const char* const dir = options.dir.c_str();
  const unsigned flags = FlagsOf(options.mode);
  code = env->Call([&] { return mdb_env_open(env->env_, dir, flags, 0600); });
  if (code != 0) return LmdbError(code, "cannot open " + EscapeForeign(options.dir));
  if (guarded) env->maps_ = GuardedMaps::OfFilesIn(options.dir);
  TRY(env->OpenTables(options.mode != IndexEnvOptions::Mode::kInspect));
  return env;
}

IndexEnv::~IndexEnv() {
  if (env_ == nullptr) return;
  (void)Call([this] {
    mdb_env_close(env_);
    return 0;
  });
}

int IndexEnv::LostCode() const {
  switch (lost_.load(std::memory_order_relaxed)) {
    case GuardEnd::kDone:
      return 0;
    case GuardEnd::kFault:
      return kLostByFault;
    case GuardEnd::kAssertion:
      return kLostByAssertion;
  }
  return kLostByFault;
}

int IndexEnv::Lose(GuardEnd end) const {
  lost_.store(end, std::memory_order_relaxed);
  return LostCode();
}

int IndexEnv::Touch(const MDB_val& val) const {
  if (!guarded_ || val.mv_size == 0) return 0;
  if (!maps_.EndsWhereItBegins(val.mv_data, val.mv_size)) return MDB_CORRUPTED;
  // A size that is damaged must not be taken for memory to allocate.
  (void)static_cast<const volatile char*>(val.mv_data)[val.mv_size - 1];
  return 0;
}

int IndexEnv::Copy(const MDB_val& from, std::string* to) const {
  to->resize(from.mv_size);
  if (from.mv_size == 0) return 0;
  char* const target = to->data();
  return Call([&] {
    std::memcpy(target, from.mv_data, from.mv_size);
    return 0;
  });
}

Status IndexEnv::OpenTables(bool create) {
  TRY_ASSIGN(IndexTxn txn,
             IndexTxn::Begin(*this, create ? IndexTxn::Kind::kWrite : IndexTxn::Kind::kRead));
  for (size_t i = 0; i < kIndexTables; ++i) {
    const char* const name = IndexTableName(static_cast<IndexTable>(i));
    const int code =
        Call([&] { return mdb_dbi_open(txn.get(), name, create ? MDB_CREATE : 0, &tables_[i]); });
    if (code == MDB_NOTFOUND && !create) continue;
    if (code != 0) return LmdbError(code, std::string("table ") + name);
    present_[i] = true;
    unsigned flags = 0;
    const int flags_code = Call([&] { return mdb_dbi_flags(txn.get(), tables_[i], &flags); });
    // A flipped flag bit would change how keys compare and values lie.
    if (flags_code != 0 || flags != 0) {
      return LmdbError(MDB_INCOMPATIBLE, std::string("table ") + name);
    }
  }
  return txn.Commit();
}

Status IndexEnv::Sync() {
  const int code = Call([&] { return mdb_env_sync(env_, 1); });
  if (code != 0) return LmdbError(code, "sync");
  return {};
}

Result<IndexTxn> IndexTxn::Begin(const IndexEnv& env, Kind kind) {
  MDB_txn* txn = nullptr;
  const unsigned flags = kind == Kind::kRead ? MDB_RDONLY : 0;
  const int code = env.Call([&] { return mdb_txn_begin(env.get(), nullptr, flags, &txn); });
  if (code != 0) return LmdbError(code, "begin");
  return IndexTxn(&env, txn);
}

IndexTxn::~IndexTxn() {
  if (txn_ == nullptr) return;
  (void)env_->Call([this] {
    mdb_txn_abort(txn_);
    return 0;
  });
}

Result<std::optional<std::string>> IndexTxn::Get(IndexTable table, std::string_view key) {
  MDB_val key_val = ToVal(key);
  MDB_val value = {};
  int code = env_->Call([&] {
    const int got = mdb_get(txn_, env_->table(table), &key_val, &value);
    return got != 0 ? got : env_->Touch(value);
  });
  if (code == MDB_NOTFOUND) return std::optional<std::string>();
  std::string copy;
  if (code == 0) code = env_->Copy(value, &copy);
  if (code != 0) return LmdbError(code, "get");
  return std::optional<std::string>(std::move(copy));
}

Result<uint64_t> IndexTxn::CountEntries(IndexTable table) {
  MDB_stat stat = {};
  const int code = env_->Call([&] { return mdb_stat(txn_, env_->table(table), &stat); });
  if (code != 0) return LmdbError(code, "stat");
  return uint64_t{stat.ms_entries};
}

Status IndexTxn::Put(IndexTable table, std::string_view key, std::string_view payload) {
  const std::string sealed = SealRecord(table, key, payload);
  MDB_val key_val = ToVal(key);
  MDB_val value = ToVal(sealed);
  const int code =
      env_->Call([&] { return mdb_put(txn_, env_->table(table), &key_val, &value, 0); });
  if (code != 0) return LmdbError(code, "put");
  return {};
}

Status IndexTxn::AppendSealed(IndexTable table, std::string_view key, std::string_view value) {
  MDB_val key_val = ToVal(key);
  MDB_val value_val = ToVal(value);
  const int code = env_->Call(
      [&] { return mdb_put(txn_, env_->table(table), &key_val, &value_val, MDB_APPEND); });
  if (code != 0) return LmdbError(code, "append");
  return {};
}

Status IndexTxn::Delete(IndexTable table, std::string_view key) {
  MDB_val key_val = ToVal(key);
  const int code = env_->Call([&] { return mdb_del(txn_, env_->table(table), &key_val, nullptr); });
  if (code != 0 && code != MDB_NOTFOUND) return LmdbError(code, "delete");
  return {};
}

Status IndexTxn::Commit() {
  MDB_txn* const txn = std::exchange(txn_, nullptr);
  const int code = env_->Call([&] { return mdb_txn_commit(txn); });
  if (code != 0) return LmdbError(code, "commit");
  return {};
}

Result<IndexCursor> IndexCursor::Open(const IndexTxn& txn, MDB_dbi table) {
  MDB_cursor* cursor = nullptr;
  const int code = txn.env().Call([&] { return mdb_cursor_open(txn.get(), table, &cursor); });
  if (code != 0) return LmdbError(code, "cursor");
  return IndexCursor(&txn.env(), cursor);
}

IndexCursor::~IndexCursor() {
  if (cursor_ == nullptr) return;
  (void)env_->Call([this] {
    mdb_cursor_close(cursor_);
    return 0;
  });
}

Result<std::optional<IndexCursor::Entry>> IndexCursor::Move(MDB_cursor_op op,
                                                            std::string_view key) {
  MDB_val key_val = ToVal(key);
  MDB_val value = {};
  int code = env_->Call([&] {
    int got = mdb_cursor_get(cursor_, &key_val, &value, op);
    if (got == 0) got = env_->Touch(key_val);
    return got != 0 ? got : env_->Touch(value);
  });
  if (code == MDB_NOTFOUND) return std::optional<Entry>();
  if (code == 0 && !env_->guarded()) return std::optional<Entry>({ToView(key_val), ToView(value)});
  if (code == 0) code = env_->Copy(key_val, &key_);
  if (code == 0) code = env_->Copy(value, &value_);
  if (code != 0) return LmdbError(code, "cursor");
  return std::optional<Entry>({key_, value_});
}

Status IndexCursor::DeleteCurrent() {
  const int code = env_->Call([&] { return mdb_cursor_del(cursor_, 0); });
  if (code != 0) return LmdbError(code, "delete");
  return {};
}

}  // namespace dartfs::core
