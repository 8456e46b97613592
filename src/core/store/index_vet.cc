#include "core/store/index_vet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"
#include "core/store/layout.h"

namespace dartfs::core {
namespace {

constexpr size_t kHashPieceBytes = size_t{1} << 20;
constexpr size_t kPiecesPerThread = 32;  // fewer are not worth another
constexpr size_t kMostHashThreads = 3;

std::string SealPath(const std::string& dir) { return dir + "/seal"; }

// Sums of the file's pieces `first`, `first + step` and so on, into their places in `sums`.
Status SumPieces(int fd, uint64_t size, size_t first, size_t step, std::vector<uint64_t>* sums) {
  std::vector<std::byte> piece(kHashPieceBytes);
  for (size_t i = first; i < sums->size(); i += step) {
    const uint64_t start = i * kHashPieceBytes;
    const size_t length = std::min<uint64_t>(kHashPieceBytes, size - start);
    for (size_t done = 0; done < length;) {
      const ssize_t bytes =
          ::pread(fd, piece.data() + done, length - done, static_cast<off_t>(start + done));
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) return ErrnoError(errno, "read");
      if (bytes == 0) return MakeError(Code::kIo, "the file shrinks");
      done += static_cast<size_t>(bytes);
    }
    (*sums)[i] = Xxh3(std::span(piece).first(length));
  }
  return {};
}

// One checksum over the checksums of the file's pieces, and its size. A large index is read by
// several threads: a start waits for this.
Result<std::string> SealText(const std::string& dir) {
  const std::string path = dir + "/data.mdb";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "cannot open " + EscapeForeign(path));
  struct stat st = {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "fstat " + EscapeForeign(path));
  const auto size = static_cast<uint64_t>(st.st_size);
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<uint64_t> sums((size + kHashPieceBytes - 1) / kHashPieceBytes);
  const size_t helpers = std::min<size_t>(kMostHashThreads, sums.size() / kPiecesPerThread);
  std::vector<Status> outcomes(helpers + 1);
  const auto sum_share = [&](size_t share) {
    outcomes[share] = SumPieces(fd.get(), size, share, outcomes.size(), &sums);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i <= helpers; ++i) {
    threads.push_back(StartThread("index-seal", [&sum_share, i] { sum_share(i); }));
  }
  sum_share(0);
  for (auto& thread : threads) thread.join();
  for (const Status& outcome : outcomes) {
    if (!outcome) return Error(outcome.error()).WithContext(EscapeForeign(path));
  }
  const uint64_t sum = Xxh3(std::as_bytes(std::span(sums)));
  return "data.mdb " + std::to_string(size) + " bytes, xxh3 " + std::to_string(sum) + "\n";
}

struct Child {
  pid_t pid = -1;
  UniqueFd ended;  // readable (end of file) once the child is gone
};

// In the child: die with the parent and without a trace of our own handlers, then do the work.
[[noreturn]] void RunChild(const IndexVetOptions& options, IndexWalkReport* report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int fault : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(fault, SIG_DFL);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, STDERR_FILENO);  // LMDB says there what its assertions found
  WalkIndex(options, report);
  ::_exit(0);
}

Result<Child> Fork(const IndexVetOptions& options, IndexWalkReport* report) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  Child child;
  child.ended.Reset(ends[0]);
  UniqueFd child_end(ends[1]);
  child.pid = ::fork();
  if (child.pid < 0) return ErrnoError(errno, "fork");
  if (child.pid == 0) RunChild(options, report);
  return child;
}

enum class End { kDone, kDied, kLate };

// How it ended; it is killed at the deadline, and reaped.
End Await(const Child& child, Duration deadline) {
  const TimePoint end = RealClock().Now() + deadline;
  bool ended = false;
  for (;;) {
    const int64_t left_ms = ToMillis(end - RealClock().Now());
    if (left_ms <= 0) break;
    pollfd wait = {child.ended.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left_ms));
    ended = ready > 0;
    if (ended || (ready < 0 && errno != EINTR)) break;
  }
  if (!ended) ::kill(child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return End::kLate;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? End::kDone : End::kDied;
}

struct Unmap {
  void operator()(IndexWalkReport* report) const { ::munmap(report, sizeof *report); }
};

// What an earlier attempt left.
void RemoveTree(const std::string& dir) {
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
}

// What the child left in shared memory, however it ended. An error: not the index's fault.
Result<IndexWalkReport> WalkInChild(const IndexVetOptions& options, End* end) {
  void* const memory = ::mmap(nullptr, sizeof(IndexWalkReport), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoError(errno, "mmap");
  const std::unique_ptr<IndexWalkReport, Unmap> report(new (memory) IndexWalkReport());
  TRY_ASSIGN(const Child child, Fork(options, report.get()));
  *end = Await(child, options.deadline);
  if (report->open_errno != 0) {
    return ErrnoError(report->open_errno,
                      "cannot check the cache index " + EscapeForeign(options.dir));
  }
  if (report->copy_errno != 0) {
    RemoveTree(options.copy_dir);
    return ErrnoError(report->copy_errno, "the cache index " + EscapeForeign(options.dir) +
                                              " must be rebuilt, and cannot be copied to " +
                                              EscapeForeign(options.copy_dir));
  }
  return *report;
}

IndexVerdict UseCopy(const IndexWalkReport& report, std::string reason) {
  IndexVerdict verdict;
  verdict.action = IndexVerdict::Action::kUseCopy;
  verdict.records = report.copied_records;
  verdict.lost_records = report.bad_records;
  verdict.reason = std::move(reason);
  return verdict;
}

IndexVerdict SetAside(std::string reason) {
  IndexVerdict verdict;
  verdict.action = IndexVerdict::Action::kSetAside;
  verdict.reason = std::move(reason);
  return verdict;
}

Result<IndexVerdict> Salvage(IndexVetOptions options, const std::string& reason) {
  options.always_copy = true;
  RemoveTree(options.copy_dir);
  End end = End::kDone;
  TRY_ASSIGN(const IndexWalkReport report, WalkInChild(options, &end));
  if (report.copied_records == 0) {
    if (end != End::kLate) return SetAside(reason + "; nothing of it could be read");
    return MakeError(Code::kDeadlineExceeded, "the disk of the cache index " +
                                                  EscapeForeign(options.dir) + " does not answer");
  }
  const bool whole = end == End::kDone && report.copied;
  return UseCopy(report, whole ? reason : reason + "; read only in part");
}

}  // namespace

Result<IndexVerdict> VetIndex(const IndexVetOptions& options) {
  RemoveTree(options.copy_dir);
  const SealState seal = CheckIndexSeal(options.dir);
  if (options.always_copy) return Salvage(options, "the last runs ended inside a commit");
  if (seal == SealState::kMatches) return IndexVerdict();
  if (seal == SealState::kDiffers) return Salvage(options, "it changed since the last clean stop");
  End end = End::kDone;
  TRY_ASSIGN(const IndexWalkReport report, WalkInChild(options, &end));
  if (report.sound) return IndexVerdict{.records = report.records, .reason = ""};
  if (end == End::kLate && !report.walked && report.bad_records == 0) {
    return IndexVerdict{.records = report.records, .reason = "too slow a disk to check it whole"};
  }
  if (end != End::kDone) {
    if (report.copied_records > 0) return UseCopy(report, "damaged pages; read only in part");
    return Salvage(options, "damaged pages");
  }
  if (!report.copied || report.copied_records == 0) {
    return SetAside("damaged, and nothing of it could be copied");
  }
  return UseCopy(report, "damaged records or pages");
}

Status WriteIndexSeal(const std::string& dir) {
  TRY_ASSIGN(const std::string text, SealText(dir));
  return WriteFileDurably(SealPath(dir), text);
}

SealState CheckIndexSeal(const std::string& dir) {
  const auto seal = ReadSmallFile(SealPath(dir));
  if (!seal) return SealState::kAbsent;
  const auto now = SealText(dir);
  return now && *now == *seal ? SealState::kMatches : SealState::kDiffers;
}

Status RemoveIndexSeal(const std::string& dir) {
  if (::unlink(SealPath(dir).c_str()) != 0) {
    if (errno == ENOENT) return {};
    return ErrnoError(errno, "cannot remove " + EscapeForeign(SealPath(dir)));
  }
  return SyncDirectory(dir);
}

}  // namespace dartfs::core
