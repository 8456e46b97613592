#include "fs/mount.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "fs/file_system.h"
#include "fs/fuse_mount.h"
#include "fs/fuse_session.h"
#include "fs/fusermount.h"

namespace dartfs::fs {
namespace {

using core::EscapeForeign;
using core::Result;
using core::Status;

constexpr core::Duration kReadyTimeout = std::chrono::seconds(10);
constexpr core::Duration kGrace = std::chrono::seconds(1);
constexpr core::Duration kParkInterval = std::chrono::seconds(1);
constexpr core::Duration kWaitStep = std::chrono::hours(1);

std::string SourceForPeople(const std::string& source) {
  return source.find("://") != std::string::npos ? core::RedactUrl(source) : EscapeForeign(source);
}

unsigned ThreadCount(unsigned asked) {
  if (asked != 0) return asked;
  return std::clamp(2 * std::thread::hardware_concurrency(), 4u, 16u);
}

FileSystemOptions FsOptions(const MountOptions& options) {
  FileSystemOptions fs;
  fs.ttl = options.ttl;
  fs.timeout = options.timeout;
  fs.uid = options.uid;
  fs.gid = options.gid;
  fs.umask = options.umask;
  fs.grid = options.grid;
  fs.authorization = options.authorization;
  fs.fill = options.fill;
  return fs;
}

// Keeps a file system until the last completion has come back to it.
void Park(std::unique_ptr<FileSystem> fs, core::Scheduler& scheduler) {
  if (fs->Idle()) return;
  scheduler.After(kParkInterval,
                  [fs = std::move(fs), &scheduler]() mutable { Park(std::move(fs), scheduler); });
}

}  // namespace

struct Mount::Impl {
  Impl(MountOptions o, core::Engine& e) : options(std::move(o)), engine(e) {}
  Status Start(std::unique_ptr<Namespace> names);
  Status Attach();
  void StartPassthrough();
  void Stop();
  Status Unmount();

  MountOptions options;
  std::string mountpoint;
  std::string source;
  core::Engine& engine;
  std::unique_ptr<FileSystem> fs;
  std::unique_ptr<FuseSession> session;
  dev_t device = 0;         // st_dev of the mount
  std::string passthrough;  // "on", or why not
  std::atomic<bool> stopped{false};
};

Status Mount::Impl::Start(std::unique_ptr<Namespace> names) {
  mountpoint = options.mountpoint;
  if (!options.device.valid()) {
    TRY_ASSIGN(mountpoint, PrepareMountpoint(options.mountpoint));
  }
  source = SourceForPeople(options.source);
  fs = std::make_unique<FileSystem>(FsOptions(options), std::move(names), engine);
  TRY(Attach());
  TRY(session->WaitReady(kReadyTimeout));
  StartPassthrough();
  if (options.read_ahead_kib == 0 || device == 0) return {};
  if (const Status raised = SetReadAhead(device, options.read_ahead_kib); !raised) {
    LOG_INFO("the kernel's read-ahead stays at its default: {}", raised.error().context);
  }
  return {};
}

void Mount::Impl::StartPassthrough() {
  const Status started = session->StartPassthrough(options.probe_file);
  passthrough = started ? "on" : started.error().context;
  if (started) {
    LOG_INFO(
        "{}: files that are complete in the cache and checked are read by the kernel itself "
        "(passthrough)",
        EscapeForeign(mountpoint));
  } else {
    LOG_INFO("{}: no passthrough, all reads go through the daemon: {}", EscapeForeign(mountpoint),
             passthrough);
  }
}

// Mounts, where that has not been done, and starts the session.
Status Mount::Impl::Attach() {
  FuseSession::Options session_options;
  session_options.threads = ThreadCount(options.threads);
  session_options.max_background = options.max_background;
  session_options.passthrough = options.passthrough;
  if (options.device.valid()) {
    session_options.device = std::move(options.device);
    device = options.device_number;
  } else {
    const FuseMountOptions mount{mountpoint, source, options.allow_other, options.noexec};
    TRY_ASSIGN(session_options.device,
               geteuid() == 0 ? MountFuse(mount)
                              : MountByFusermount(mountpoint, FusermountOptions(mount)));
    // Known from here on, so that whatever fails below does not leave a dead mount behind.
    device = DeviceAt(mountpoint);
    if (device != 0 && options.on_mounted) options.on_mounted(mountpoint, device);
  }
  TRY_ASSIGN(session, FuseSession::Create(std::move(session_options), *fs, engine.scheduler()));
  return {};
}

void Mount::Impl::Stop() {
  if (stopped.exchange(true)) return;
  if (const Status unmounted = Unmount(); !unmounted) {
    LOG_ERROR("{}", unmounted.error().context);
  }
  if (session) session->Stop();
  if (fs) fs->Stop();
}

Status Mount::Impl::Unmount() {
  Status unmounted = UnmountFuse(mountpoint, device);
  if (unmounted || unmounted.error().code != core::Code::kBusy) return unmounted;
  LOG_WARN("{}: detached from the tree; files still open there get errors",
           unmounted.error().context);
  if (session) session->AnswerWaiting(kGrace);
  return AbortFuse(mountpoint, device);
}

Result<std::unique_ptr<Mount>> Mount::Create(MountOptions options, std::unique_ptr<Namespace> names,
                                             core::Engine& engine) {
  auto impl = std::make_unique<Impl>(std::move(options), engine);
  const Status started = impl->Start(std::move(names));
  std::unique_ptr<Mount> mount(new Mount(std::move(impl)));
  if (!started) return started.error();
  return mount;
}

Mount::Mount(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Mount::~Mount() {
  Stop();
  impl_->session.reset();
  if (impl_->fs) Park(std::move(impl_->fs), impl_->engine.scheduler());
}

void Mount::Wait() {
  while (!WaitFor(kWaitStep)) {
  }
}

bool Mount::WaitFor(core::Duration timeout) { return impl_->session->WaitEnded(timeout); }

void Mount::Stop() { impl_->Stop(); }

const std::string& Mount::mountpoint() const { return impl_->mountpoint; }

MountStats Mount::Stats() const {
  const FileSystemStats fs = impl_->fs->Stats();
  MountStats stats;
  stats.mountpoint = impl_->mountpoint;
  stats.source = impl_->source;
  stats.nodes = fs.nodes;
  stats.open_files = fs.open_files;
  stats.open_dirs = fs.open_dirs;
  stats.refused_nodes = fs.refused_nodes;
  stats.waiting = impl_->session->waiting();
  stats.passthrough = impl_->passthrough;
  stats.passthrough_nodes = fs.passthrough_nodes;
  stats.passthrough_opens = fs.passthrough_opens;
  for (size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    stats.requests.emplace_back(OpName(op), impl_->session->counts().Get(op));
  }
  return stats;
}

}  // namespace dartfs::fs
