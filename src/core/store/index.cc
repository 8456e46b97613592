#include "core/store/index.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/store/index_batch.h"
#include "core/store/index_env.h"
#include "core/store/index_vet.h"
#include "core/store/layout.h"

namespace dartfs::core {
namespace {

constexpr char kSeqKey[] = "commit_seq";
constexpr unsigned kDeathsInARow = 2;

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Also true of a file that a start was killed over before it had written anything.
bool IsEmpty(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) != 0 || st.st_size == 0;
}

Status Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return ErrnoError(errno, "cannot rename " + EscapeForeign(from) + " to " + EscapeForeign(to));
}

// Keeps the two newest that were set aside: each may be as large as the index.
Status SetAside(const std::string& dir, const std::string& reason) {
  constexpr int kKept = 2;
  std::error_code ignored;
  std::filesystem::remove_all(dir + ".bad-" + std::to_string(kKept), ignored);
  for (int i = kKept - 1; i > 0; --i) {
    const std::string from = dir + ".bad-" + std::to_string(i);
    if (Exists(from)) TRY(Rename(from, dir + ".bad-" + std::to_string(i + 1)));
  }
  TRY(Rename(dir, dir + ".bad-1"));
  LOG_ERROR("cache index set aside as {}: {}; the cache begins empty",
            EscapeForeign(dir + ".bad-1"), reason);
  return SyncDirectory(std::filesystem::path(dir).parent_path().string());
}

std::string ReplacedDir(const std::string& dir) { return dir + ".old"; }

void RemoveTree(const std::string& dir) {
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
}

// However far it gets, the index or its copy stands under `dir` after FinishUseCopy.
Status UseCopy(const std::string& dir, const std::string& copy_dir, const IndexVerdict& verdict) {
  TRY(SyncFile(copy_dir + "/data.mdb"));  // its child may have died before it could
  TRY(SyncDirectory(copy_dir));
  TRY(Rename(dir, ReplacedDir(dir)));
  TRY(Rename(copy_dir, dir));
  TRY(SyncDirectory(std::filesystem::path(dir).parent_path().string()));
  RemoveTree(ReplacedDir(dir));
  LOG_WARN("cache index rebuilt from {} records, {} lost: {}", verdict.records,
           verdict.lost_records, verdict.reason);
  return {};
}

Status FinishUseCopy(const std::string& dir) {
  if (!Exists(ReplacedDir(dir))) return {};
  if (!Exists(dir)) return Rename(ReplacedDir(dir), dir);
  RemoveTree(ReplacedDir(dir));
  return {};
}

Status CheckFiles(const std::string& dir) {
  TRY(CheckOwn(dir, S_IFDIR));
  for (const char* const file : {"/data.mdb", "/lock.mdb"}) TRY(CheckOwn(dir + file, S_IFREG));
  return {};
}

// A process that may not map it at all must not take that for damage.
Status CheckAddressSpace(uint64_t bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return ErrnoError(errno, "no address space for the cache index, " + std::to_string(bytes) +
                                 " bytes (is it limited, by ulimit -v or LimitAS?)");
  }
  ::munmap(mapped, bytes);
  return {};
}

// Leaves in `dir` an index that may be opened, or none. Returns how many records were lost.
Result<uint64_t> Prepare(const IndexOptions& options, const IndexPhase::Deaths& deaths) {
  using Action = IndexVerdict::Action;
  const std::string& dir = options.dir;
  const std::string copy_dir = dir + ".new";
  if (IsEmpty(dir + "/data.mdb")) return uint64_t{0};
  const bool died_often = deaths.in_a_row >= kDeathsInARow;
  IndexVerdict verdict;
  if (died_often && deaths.phase == IndexPhase::Phase::kOpening) {
    verdict = {.action = Action::kSetAside, .reason = "two starts in a row died while opening it"};
  } else {
    TRY_ASSIGN(verdict, VetIndex({.dir = dir,
                                  .copy_dir = copy_dir,
                                  .map_bytes = options.map_bytes,
                                  .always_copy = died_often}));
  }
  switch (verdict.action) {
    case Action::kUse:
      if (!verdict.reason.empty()) LOG_WARN("cache index: {}", verdict.reason);
      break;
    case Action::kUseCopy:
      TRY(UseCopy(dir, copy_dir, verdict));
      break;
    case Action::kSetAside:
      TRY(SetAside(dir, verdict.reason));
      break;
  }
  return verdict.lost_records;
}

}  // namespace

struct Index::State {
  std::unique_ptr<IndexEnv> env;
  std::optional<IndexPhase> phase;  // from Open's end on
};

bool IndexBatch::empty() const {
  return rekeys.empty() && erased_objects.empty() && objects.empty() && chunks.empty() &&
         sums.empty() && names.empty();
}

Index::Index(IndexOptions options, std::unique_ptr<State> state)
    : options_(std::move(options)), state_(std::move(state)) {}

Index::~Index() = default;

Result<std::unique_ptr<Index>> Index::Open(const IndexOptions& options, Chunks* chunks) {
  TRY(CheckAddressSpace(options.map_bytes));
  // Beside the directory, not in it: it outlives an index that is set aside or rebuilt.
  TRY_ASSIGN(IndexPhase phase, IndexPhase::Begin(options.dir + ".phase"));
  auto index = OpenVetted(options, phase.deaths(), chunks);
  if (!index) {
    phase.PutBack();
    return index;
  }
  phase.Enter(IndexPhase::Phase::kIdle);
  (*index)->state_->phase.emplace(std::move(phase));
  return index;
}

Result<std::unique_ptr<Index>> Index::OpenVetted(const IndexOptions& options,
                                                 const IndexPhase::Deaths& deaths, Chunks* chunks) {
  TRY(FinishUseCopy(options.dir));
  TRY(CheckFiles(options.dir));
  const bool was_clean = Exists(options.dir + "/seal");
  TRY_ASSIGN(const uint64_t lost, Prepare(options, deaths));
  auto index = OpenPrepared(options, chunks);
  if (!index && index.error().code == Code::kCorrupt) {
    TRY(SetAside(options.dir, index.error().ToString()));
    index = OpenPrepared(options, chunks);
  }
  if (!index) return index;
  (*index)->corrupt_records_ += lost;
  (*index)->was_clean_ = was_clean;
  return index;
}

Result<std::unique_ptr<Index>> Index::OpenPrepared(const IndexOptions& options, Chunks* chunks) {
  TRY(MakeDirectory(options.dir));
  TRY(RemoveIndexSeal(options.dir));
  auto state = std::make_unique<State>();
  TRY_ASSIGN(state->env,
             IndexEnv::Open({options.dir, options.map_bytes, IndexEnvOptions::Mode::kReadWrite}));
  std::unique_ptr<Index> index(new Index(options, std::move(state)));
  TRY(index->Scan(chunks));
  return index;
}

Status Index::Scan(Chunks* chunks) {
  chunks->clear();
  TRY_ASSIGN(IndexTxn txn, IndexTxn::Begin(*state_->env, IndexTxn::Kind::kRead));
  TRY_ASSIGN(const auto seq, txn.Get(IndexTable::kMeta, kSeqKey));
  if (seq) {
    const auto payload = UnsealRecord(IndexTable::kMeta, kSeqKey, *seq);
    commit_seq_ = payload ? DecodeNumber(*payload).value_or(0) : 0;
  }
  TRY_ASSIGN(IndexCursor cursor, IndexCursor::Open(txn, state_->env->table(IndexTable::kChunks)));
  for (;;) {
    TRY_ASSIGN(const auto entry, cursor.Next());
    if (!entry) return {};
    const auto payload = UnsealRecord(IndexTable::kChunks, entry->key, entry->value);
    const auto record = payload ? DecodeChunk(*payload) : std::nullopt;
    const auto key = ParseChunkKey(entry->key);
    if (record && key) {
      chunks->emplace_back(*key, *record);
    } else {
      corrupt_records_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

std::optional<std::string> Index::Get(IndexTable table, std::string_view key) {
  auto txn = IndexTxn::Begin(*state_->env, IndexTxn::Kind::kRead);
  if (!txn) {
    (void)NoteDamage(std::move(txn).error());
    return std::nullopt;
  }
  const auto value = txn->Get(table, key);
  if (!value) {
    (void)NoteDamage(value.error());
    return std::nullopt;
  }
  if (!*value) return std::nullopt;
  const auto payload = UnsealRecord(table, key, **value);
  if (!payload) {
    corrupt_records_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return std::string(*payload);
}

std::optional<ObjectMeta> Index::GetObject(const StoreKey& key) {
  const auto payload = Get(IndexTable::kObjects, ObjectKeyBytes(key));
  return payload ? DecodeObject(*payload) : std::nullopt;
}

std::optional<std::vector<uint64_t>> Index::GetSums(const StoreKey& key, uint64_t block) {
  const auto payload = Get(IndexTable::kSums, SumsKeyBytes(key, block));
  return payload ? DecodeSums(*payload) : std::nullopt;
}

std::optional<std::string> Index::GetName(NameTable table, std::string_view name) {
  const auto payload = Get(TableOf(table), NameKeyBytes(name));
  auto record = payload ? DecodeName(*payload) : std::nullopt;
  // The key is only a hash.
  if (!record || record->name != name) return std::nullopt;
  return std::move(record->value);
}

Status Index::Commit(const IndexBatch& batch) {
  if (damaged()) return MakeError(Code::kCorrupt, DamageReason());
  state_->phase->Enter(IndexPhase::Phase::kCommitting);
  Status status = NoteDamage(Apply(batch));
  state_->phase->Enter(IndexPhase::Phase::kIdle);
  return status;
}

Status Index::Apply(const IndexBatch& batch) {
  TRY_ASSIGN(IndexTxn txn, IndexTxn::Begin(*state_->env, IndexTxn::Kind::kWrite));
  IndexBatchWriter writer(*state_->env, txn, options_.max_names);
  TRY(writer.Write(batch));
  const uint64_t seq = commit_seq() + 1;
  TRY(txn.Put(IndexTable::kMeta, kSeqKey, EncodeNumber(seq)));
  TRY(txn.Commit());
  commit_seq_.store(seq, std::memory_order_relaxed);
  return {};
}

Status Index::NoteDamage(Status status) {
  if (status.has_value()) return status;
  const bool is_lost = state_->env->lost();
  if (status.error().code != Code::kCorrupt && !is_lost) return status;
  if (is_lost && status.error().code == Code::kIo) unreadable_ = true;
  if (!damaged_.exchange(true)) {
    LOG_ERROR("cache: {} ({})", DamageReason(), status.error().ToString());
  }
  return status;
}

std::string Index::DamageReason() const {
  if (!unreadable_) return "index damaged: restart to have it rebuilt";
  return "the index could not be read from the disk: I/O error; see the kernel's log for the disk, "
         "and restart to have the index checked and rebuilt";
}

Status Index::Close() {
  if (state_->env == nullptr) return {};
  state_->env.reset();
  if (damaged()) return {};
  return WriteIndexSeal(options_.dir);
}

}  // namespace dartfs::core
