// What the vetting child does: walks every table, and copies what decodes where it must.
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/store/index_env.h"
#include "core/store/index_vet.h"

namespace dartfs::core {
namespace {

constexpr size_t kRecordsPerCommit = 4096;
constexpr MDB_dbi kFreeTable = 0;  // LMDB's own list of free pages

// Pages that hold entries, to be compared with the free list. A page begins with its own number; an
// entry lies in one page, or at the start of a run of overflow pages.
class PageSet {
 public:
  explicit PageSet(size_t last_page) : seen_(last_page / 64 + 1) {}
  // False for a page that can't be.
  bool Add(const void* entry, size_t page_bytes) {
    const auto page = std::bit_cast<uintptr_t>(entry) & ~(uintptr_t{page_bytes} - 1);
    size_t number = 0;
    std::memcpy(&number, std::bit_cast<const void*>(page), sizeof number);
    if (number / 64 >= seen_.size()) return false;
    seen_[number / 64] |= uint64_t{1} << number % 64;
    return true;
  }
  bool Has(size_t number) const {
    return number / 64 < seen_.size() && (seen_[number / 64] >> number % 64 & 1) != 0;
  }

 private:
  std::vector<uint64_t> seen_;
};

class Walker {
 public:
  Walker(const IndexEnv& env, const IndexTxn& txn, IndexWalkReport* report, PageSet* pages)
      : env_(env), txn_(txn), report_(report), pages_(pages) {}

  // Structure of one table; its records are counted as they decode or not.
  bool WalkTable(IndexTable table) {
    MDB_stat stat = {};
    if (mdb_stat(txn_.get(), env_.table(table), &stat) != 0) return false;
    auto cursor = IndexCursor::Open(txn_, env_.table(table));
    if (!cursor) return false;
    std::string previous;
    for (size_t seen = 0;; ++seen) {
      auto entry = cursor->Next();
      if (!entry) return false;
      if (!*entry) return seen == stat.ms_entries;
      if (seen > stat.ms_entries) return false;
      const auto [key, value] = **entry;
      if (seen > 0 && key <= previous) return false;
      previous.assign(key);
      if (!pages_->Add(value.data(), stat.ms_psize)) return false;
      ++report_->records;
      if (!UnsealRecord(table, key, value)) ++report_->bad_records;
    }
  }

  // No free page may be one in use, nor be named twice.
  bool WalkFreeList(size_t last_page) {
    auto cursor = IndexCursor::Open(txn_, kFreeTable);
    if (!cursor) return false;
    PageSet freed(last_page);
    for (;;) {
      auto entry = cursor->Next();
      if (!entry) return false;
      if (!*entry) return true;
      const std::string_view value = (*entry)->value;
      std::vector<size_t> pages(value.size() / sizeof(size_t));
      if (pages.empty()) return false;
      std::memcpy(pages.data(), value.data(), pages.size() * sizeof(size_t));
      if (pages[0] >= pages.size()) return false;
      for (size_t i = 1; i <= pages[0]; ++i) {
        if (pages[i] < 2 || pages[i] > last_page || pages_->Has(pages[i])) return false;
        if (i > 1 && pages[i] >= pages[i - 1]) return false;
      }
    }
  }

 private:
  const IndexEnv& env_;
  const IndexTxn& txn_;
  IndexWalkReport* const report_;
  PageSet* const pages_;
};

bool WalkAll(const IndexEnv& env, const IndexTxn& txn, IndexWalkReport* report) {
  MDB_envinfo info = {};
  if (mdb_env_info(env.get(), &info) != 0) return false;
  // Nothing but LMDB's two first pages: a start was killed before it had made the tables.
  MDB_stat tables = {};
  if (mdb_env_stat(env.get(), &tables) != 0) return false;
  if (info.me_last_pgno <= 1 && tables.ms_entries == 0) return true;
  PageSet pages(info.me_last_pgno);
  Walker walker(env, txn, report, &pages);
  for (size_t i = 0; i < kIndexTables; ++i) {
    const auto table = static_cast<IndexTable>(i);
    if (!env.has(table) || !walker.WalkTable(table)) return false;
  }
  return walker.WalkFreeList(info.me_last_pgno) && report->bad_records == 0;
}

// Copies record by record in batches that commit, so that what was reached stays when a damaged
// page ends this process.
class Copier {
 public:
  Copier(const IndexEnv& from_env, const IndexTxn& from, const IndexEnv& to,
         IndexWalkReport* report)
      : from_env_(from_env), from_(from), to_(to), report_(report) {}

  // False where the copy can't be written; damage only ends its table.
  bool CopyTable(IndexTable table) {
    if (!from_env_.has(table)) return true;
    auto cursor = IndexCursor::Open(from_, from_env_.table(table));
    if (!cursor) return true;
    std::string previous;
    for (bool more = true; more;) {
      auto txn = IndexTxn::Begin(to_, IndexTxn::Kind::kWrite);
      if (!txn) return NotWritten(txn.error());
      size_t in_batch = 0;
      for (; in_batch < kRecordsPerCommit; ++in_batch) {
        auto entry = cursor->Next();
        more = entry && *entry;
        if (!more) break;
        const auto [key, value] = **entry;
        if (key <= previous || !UnsealRecord(table, key, value)) {
          report_->bad_records += report_->walked ? 0 : 1;
          continue;
        }
        previous.assign(key);
        const Status appended = txn->AppendSealed(table, key, value);
        if (!appended) return NotWritten(appended.error());
      }
      const Status committed = txn->Commit();
      if (!committed) return NotWritten(committed.error());
      report_->copied_records += in_batch;
    }
    return true;
  }

  bool NotWritten(const Error& error) {
    const bool full = error.sys_errno == 0 && error.code == Code::kNoSpace;
    report_->copy_errno = full ? ENOSPC : error.sys_errno;
    return false;
  }

 private:
  const IndexEnv& from_env_;
  const IndexTxn& from_;
  const IndexEnv& to_;
  IndexWalkReport* const report_;
};

bool CopyAll(const IndexVetOptions& options, const IndexEnv& env, const IndexTxn& txn,
             IndexWalkReport* report) {
  if (::mkdir(options.copy_dir.c_str(), 0700) != 0) {
    report->copy_errno = errno;
    return false;
  }
  auto copy = IndexEnv::Open({options.copy_dir, options.map_bytes, IndexEnvOptions::Mode::kBuild});
  if (!copy) {
    report->copy_errno = copy.error().sys_errno;
    return false;
  }
  Copier copier(env, txn, **copy, report);
  // The most valuable first: what a damaged page hides is all that comes behind it.
  for (const IndexTable table : {IndexTable::kMeta, IndexTable::kChunks, IndexTable::kObjects,
                                 IndexTable::kNames, IndexTable::kUrls, IndexTable::kSums}) {
    if (!copier.CopyTable(table)) return false;
  }
  const Status synced = (*copy)->Sync();
  return synced || copier.NotWritten(synced.error());
}

// Of the process or the file's permissions, not of what the file holds. Not ENOMEM: a damaged size
// asks for too much, too.
bool IsOfTheSystem(int sys_errno) {
  return sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == EACCES || sys_errno == EPERM;
}

}  // namespace

void WalkIndex(const IndexVetOptions& options, IndexWalkReport* report) {
  auto env = IndexEnv::Open({options.dir, options.map_bytes, IndexEnvOptions::Mode::kInspect});
  if (!env) {
    if (IsOfTheSystem(env.error().sys_errno)) report->open_errno = env.error().sys_errno;
    return;
  }
  auto txn = IndexTxn::Begin(**env, IndexTxn::Kind::kRead);
  if (!txn) return;
  if (!options.always_copy) {
    report->sound = WalkAll(**env, *txn, report);
    report->walked = true;  // bad_records is known
    if (report->sound) return;
  }
  report->copied = CopyAll(options, **env, *txn, report);
}

}  // namespace dartfs::core
