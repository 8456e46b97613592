#include "httpd/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"

namespace dartfs::httpd {
namespace {

using core::MutexLock;
using core::Result;

constexpr mode_t kMode = 0640;  // of what it holds, an operator's group may know
// Lines are gathered for so long: a write a request would cost more than the line.
constexpr core::Duration kGather = std::chrono::milliseconds(100);

// Never waits: a pipe without a reader is refused, a full one drops lines.
Result<core::UniqueFd> OpenFile(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  core::UniqueFd fd(open(path.c_str(), kFlags, kMode));
  if (fd.valid()) return fd;
  return core::ErrnoError(errno,
                          "the access log " + core::EscapeForeign(path) + " can't be opened");
}

uint64_t LinesIn(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

struct AccessLog::Impl {
  Impl(AccessLogOptions o, core::UniqueFd opened) : options(std::move(o)), fd(std::move(opened)) {}

  void Add(std::string line);
  void Run();
  void ReopenNow();
  void Write(std::string_view text);
  void Tell(uint64_t lines);

  const AccessLogOptions options;
  std::atomic<uint64_t> dropped{0};

  core::UniqueFd fd;  // these four: the writer's alone
  bool torn = false;  // the file ends in the middle of a line
  bool failing = false;
  uint64_t told = 0;  // of `dropped`

  core::Mutex mu;  // leaf
  core::CondVar changed;
  std::string pending GUARDED_BY(mu);
  bool reopen GUARDED_BY(mu) = false;
  bool stop GUARDED_BY(mu) = false;
  std::thread thread;
};

void AccessLog::Impl::Add(std::string line) {
  MutexLock lock(mu);
  if (pending.size() + line.size() > options.pending_bytes) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const bool first = pending.empty();
  pending += line;
  if (first) changed.NotifyOne();
}

void AccessLog::Impl::Run() {
  std::string batch;
  bool ending = false;
  while (!ending) {
    bool reopening = false;
    batch.clear();
    {
      MutexLock lock(mu);
      while (pending.empty() && !reopen && !stop) changed.Wait(mu);
      // More may come; a stop or a rotation does not wait.
      if (!stop && !reopen) changed.WaitFor(mu, kGather);
      std::swap(batch, pending);
      reopening = std::exchange(reopen, false);
      ending = stop;
    }
    // What came before the rotation belongs into the old file.
    Write(batch);
    if (reopening) ReopenNow();
    Tell(dropped.load(std::memory_order_relaxed));
  }
}

void AccessLog::Impl::ReopenNow() {
  auto opened = OpenFile(options.path);
  if (!opened) {
    LOG_ERROR("{}; the old file is written on", opened.error().context);
    return;
  }
  fd = std::move(*opened);
  torn = false;
}

void AccessLog::Impl::Write(std::string_view text) {
  std::string mended;
  if (torn && !text.empty()) {
    mended = "\n" + std::string(text);
    text = mended;
  }
  while (!text.empty()) {
    const ssize_t written = write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      dropped.fetch_add(LinesIn(text), std::memory_order_relaxed);
      if (!std::exchange(failing, true)) {
        LOG_ERROR("{}: lines are dropped until the access log can be written again",
                  core::ErrnoError(error, core::EscapeForeign(options.path)).ToString());
      }
      return;
    }
    torn = text[static_cast<size_t>(written) - 1] != '\n';
    text.remove_prefix(static_cast<size_t>(written));
    failing = failing && !text.empty();
  }
}

void AccessLog::Impl::Tell(uint64_t lines) {
  if (lines == told) return;
  LOG_WARN("{}: {} lines of the access log were dropped", core::EscapeForeign(options.path),
           lines - told);
  told = lines;
}

AccessLog::AccessLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<AccessLog>> AccessLog::Open(AccessLogOptions options) {
  if (options.path.empty()) {
    return core::MakeError(core::Code::kInvalidArgument, "the access log needs a file's name");
  }
  TRY_ASSIGN(core::UniqueFd fd, OpenFile(options.path));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(fd));
  impl->thread = core::StartThread("access-log", [raw = impl.get()] { raw->Run(); });
  return std::unique_ptr<AccessLog>(new AccessLog(std::move(impl)));
}

AccessLog::~AccessLog() {
  {
    MutexLock lock(impl_->mu);
    impl_->stop = true;
  }
  impl_->changed.NotifyAll();
  impl_->thread.join();
}

void AccessLog::Add(const AccessRecord& record) { impl_->Add(FormatAccessLine(record)); }

void AccessLog::Reopen() {
  {
    MutexLock lock(impl_->mu);
    impl_->reopen = true;
  }
  impl_->changed.NotifyAll();
}

uint64_t AccessLog::dropped() const { return impl_->dropped.load(std::memory_order_relaxed); }

}  // namespace dartfs::httpd
