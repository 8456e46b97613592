#include "fs/fuse_session.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "fs/fuse_io.h"
#include "fs/fuse_ops.h"
#include "fs/fuse_passthrough.h"

namespace dartfs::fs {
namespace {

// Wakes the loop's thread out of sem_wait; by default ignored, so that a late one is harmless.
constexpr int kWakeSignal = SIGURG;
constexpr core::Duration kWakeInterval = std::chrono::milliseconds(10);

void ForwardLog(fuse_log_level level, const char* format, va_list args) {
  std::array<char, 512> text;
  if (std::vsnprintf(text.data(), text.size(), format, args) < 0) return;
  std::string line = core::EscapeForeign(core::TrimAscii(text.data()));
  if (level <= FUSE_LOG_ERR) {
    LOG_ERROR("{}", line);
  } else if (level <= FUSE_LOG_NOTICE) {
    LOG_WARN("{}", line);
  } else {
    LOG_DEBUG("{}", line);
  }
}

void PrepareProcess() {
  static const bool done = [] {
    fuse_set_log_func(&ForwardLog);
    struct sigaction wake {};
    wake.sa_handler = [](int) {};  // without SA_RESTART: sem_wait must return
    sigaction(kWakeSignal, &wake, nullptr);
    return true;
  }();
  static_cast<void>(done);
}

struct SessionCloser {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
struct LoopConfigCloser {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

}  // namespace

struct FuseSession::Impl {
  Impl(FileSystem& fs, core::Scheduler& scheduler, const Options& options)
      : context{.fs = fs,
                .pending = std::make_shared<PendingReplies>(scheduler),
                .max_background = options.max_background,
                .want_passthrough = options.passthrough,
                .counts = {},
                .init = {},
                .interrupts_read = 0} {}

  void Loop(unsigned threads);
  void EndLoop();

  FuseContext context;
  std::unique_ptr<fuse_session, SessionCloser> session;
  std::thread loop;
  bool stuck = false;  // somebody is still inside: never freed

  core::Mutex mu;  // leaf
  core::CondVar changed;
  bool over GUARDED_BY(mu) = false;
};

// A fixed set of threads: libfuse starts them as they are needed, and none is ended while idle.
void FuseSession::Impl::Loop(unsigned threads) {
  sigset_t wake;
  sigemptyset(&wake);
  sigaddset(&wake, kWakeSignal);
  pthread_sigmask(SIG_UNBLOCK, &wake, nullptr);
  const std::unique_ptr<fuse_loop_config, LoopConfigCloser> config(fuse_loop_cfg_create());
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  fuse_loop_cfg_set_max_threads(config.get(), threads);
  fuse_loop_cfg_set_idle_threads(config.get(), threads);
  const int result = fuse_session_loop_mt(session.get(), config.get());
  LOG_DEBUG("fuse loop ended: {}", result);
  core::MutexLock lock(mu);
  over = true;
  changed.NotifyAll();
}

// The signal is repeated: it may come between libfuse's look at the flag and its wait.
void FuseSession::Impl::EndLoop() {
  fuse_session_exit(session.get());
  core::MutexLock lock(mu);
  while (!over) {
    pthread_kill(loop.native_handle(), kWakeSignal);
    changed.WaitFor(mu, kWakeInterval);
  }
}

core::Result<std::unique_ptr<FuseSession>> FuseSession::Create(Options options, FileSystem& fs,
                                                               core::Scheduler& scheduler) {
  PrepareProcess();
  auto impl = std::make_unique<Impl>(fs, scheduler, options);
  const std::string mount_options = "max_read=" + std::to_string(kMaxReadBytes);
  std::array<const char*, 3> argv = {"dartfs", "-o", mount_options.c_str()};
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(argv.size()), const_cast<char**>(argv.data()));
  const fuse_lowlevel_ops ops = FuseOperations();
  impl->session.reset(fuse_session_new(&args, &ops, sizeof ops, &impl->context));
  fuse_opt_free_args(&args);
  if (!impl->session) {
    return core::MakeError(core::Code::kInternal, "libfuse refuses the options " + mount_options);
  }
  const std::string target = "/dev/fd/" + std::to_string(options.device.get());
  if (fuse_session_mount(impl->session.get(), target.c_str()) != 0) {
    return core::MakeError(core::Code::kInternal, "libfuse does not take the device");
  }
  static_cast<void>(options.device.Release());  // the session closes it
  if (!InstallFuseIo(impl->session.get())) {
    return core::MakeError(core::Code::kInternal, "libfuse does not take the device over");
  }
  impl->loop = core::StartThread(
      "dartfs-fuse", [raw = impl.get(), threads = options.threads] { raw->Loop(threads); });
  return std::unique_ptr<FuseSession>(new FuseSession(std::move(impl)));
}

FuseSession::FuseSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

FuseSession::~FuseSession() {
  Stop();
  if (impl_->stuck) static_cast<void>(impl_.release());
}

core::Status FuseSession::WaitReady(core::Duration timeout) {
  constexpr core::Duration kStep = std::chrono::milliseconds(1);
  for (core::Duration waited{}; waited < timeout; waited += kStep) {
    if (impl_->context.init.answered.load(std::memory_order_acquire)) return {};
    if (WaitEnded(kStep)) {
      return core::MakeError(core::Code::kIo, "the kernel ended the connection at once");
    }
  }
  return core::MakeError(core::Code::kDeadlineExceeded,
                         "the kernel does not begin to talk over /dev/fuse: try again, and look at "
                         "its log (dmesg)");
}

core::Status FuseSession::StartPassthrough(const std::string& probe_file) {
  const FuseContext& context = impl_->context;
  if (!context.want_passthrough) {
    return core::MakeError(core::Code::kUnsupported, "switched off by the option passthrough");
  }
  if (!context.init.has_passthrough) {
    return core::MakeError(core::Code::kUnsupported,
                           "the kernel does not offer it (it takes 6.9 or later with "
                           "CONFIG_FUSE_PASSTHROUGH)");
  }
  TRY_ASSIGN(auto files, MakeBackingFiles(fuse_session_fd(impl_->session.get())));
  TRY(ProbePassthrough(*files, probe_file));
  impl_->context.fs.SetBacking(std::move(files));
  return {};
}

bool FuseSession::WaitEnded(core::Duration timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  core::MutexLock lock(impl_->mu);
  while (!impl_->over) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= core::Duration::zero()) return false;
    impl_->changed.WaitFor(impl_->mu, left);
  }
  return true;
}

bool FuseSession::ended() const {
  core::MutexLock lock(impl_->mu);
  return impl_->over;
}

void FuseSession::AnswerWaiting(core::Duration grace) {
  PendingReplies& pending = *impl_->context.pending;
  if (pending.WaitEmpty(grace)) return;
  pending.FailAll(core::MakeError(core::Code::kUnavailable, "the file system is being unmounted"));
}

void FuseSession::Stop() {
  if (!impl_->loop.joinable()) return;
  PendingReplies& pending = *impl_->context.pending;
  impl_->context.fs.SetBacking(nullptr);
  impl_->EndLoop();
  impl_->loop.join();
  // No new request from here on. Those answered by another thread at this moment end by themselves.
  constexpr core::Duration kAnswering = std::chrono::seconds(5);
  AnswerWaiting(core::Duration::zero());
  if (!pending.WaitEmpty(kAnswering)) {
    LOG_ERROR("unmount: {} requests are stuck while being answered", pending.size());
    impl_->stuck = true;
    return;
  }
  const FuseContext& context = impl_->context;
  const uint64_t read = context.interrupts_read.load();
  const uint64_t matched = std::min(read, context.counts.Get(Op::kInterrupt));
  DropLateInterrupts(impl_->session.get(), read - matched);
  impl_->session.reset();
}

const OpCounts& FuseSession::counts() const { return impl_->context.counts; }

size_t FuseSession::waiting() const { return impl_->context.pending->size(); }

}  // namespace dartfs::fs
