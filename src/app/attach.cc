#include "app/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/attach_request.h"
#include "app/control_client.h"
#include "app/control_server.h"
#include "app/json_fields.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "fs/fuse_mount.h"
#include "fs/fusermount.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;
using core::UniqueFd;
using nlohmann::json;

// Below the starter's own limit (StartReport::kDeadline), whose message would not fit.
constexpr core::Duration kNodeLimit = std::chrono::seconds(100);
constexpr core::Duration kAnswerLimit = std::chrono::seconds(15);
constexpr int kPauseMs = 20;
constexpr int kLookMs = 10'000;  // at a mount, where the kernel does not tell of its end

std::string LockHolder(const std::string& cache_dir) {
  std::ifstream file(cache_dir + "/lock");
  std::string line;
  std::getline(file, line);
  const auto pid = core::ParseUint(core::TrimAscii(line));
  return pid ? "process " + std::to_string(*pid) : "another process";
}

// Asks one thing of the node. kUnavailable: it is not there yet, or not any more.
class Asker {
 public:
  explicit Asker(const std::string& cache_dir) : cache_dir_(cache_dir) {}

  Result<json> Ask(const char* verb, const AttachRequest& request, int fd,
                   core::Duration limit) const {
    json question = ToJson(request);
    question["verb"] = verb;
    const std::string line = question.dump(-1, ' ', true, json::error_handler_t::replace);
    auto answer = AskNode(cache_dir_ + "/control", {line, fd}, limit);
    if (!answer) return Unanswered(answer.error());
    const json parsed = json::parse(*answer, nullptr, /*allow_exceptions=*/false);
    if (BoolField(parsed, "ok").value_or(false)) {
      const json* const result = Field(parsed, "result");
      return result == nullptr ? json::object() : *result;
    }
    const json* const error = Field(parsed, "error");
    const json none = json::object();
    const auto code = TextField(error == nullptr ? none : *error, "code").value_or("");
    const auto text = TextField(error == nullptr ? none : *error, "message");
    const bool ending = code == core::CodeName(Code::kUnavailable);
    return MakeError(ending ? Code::kUnavailable : Code::kRefused,
                     text.value_or("the node refused the mount without a reason"));
  }

 private:
  core::Error Unanswered(const core::Error& error) const {
    switch (error.code) {
      case Code::kUnavailable:
      case Code::kBadResponse:
      case Code::kBusy:
        return MakeError(Code::kUnavailable, error.context);
      case Code::kDeadlineExceeded:
        return MakeError(Code::kDeadlineExceeded,
                         "the node that has the cache directory " + EscapeForeign(cache_dir_) +
                             " (" + LockHolder(cache_dir_) +
                             ") does not answer: see its log, and end it if it hangs; or give this "
                             "mount a cache directory of its own (--cache-dir DIR, -o "
                             "cache_dir=DIR)");
      default:
        return error;
    }
  }

  const std::string cache_dir_;
};

UniqueFd ProcessOf(const json& answer) {
  const auto pid = NumberField(answer, "pid");
  if (!pid) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0)));
}

// Whether a node answers for the mount; it may have ended in between. A node that hangs holds this
// up: nothing here can end a statfs but the end of the mount, which whoever started this process
// brings about (StartReport).
Status CheckServed(const std::string& mountpoint, dev_t device) {
  struct statfs facts {};
  if (statfs(mountpoint.c_str(), &facts) == 0) return {};
  static_cast<void>(fs::AbortFuse(mountpoint, device));
  return MakeError(Code::kUnavailable, "the node ended while it was asked");
}

Result<Joined> MountAsRoot(const fs::FuseMountOptions& mount, AttachRequest request,
                           const Asker& asker, const OnMounted& on_mounted) {
  TRY_ASSIGN(fs::DetachedMount made, fs::MakeDetachedMount(mount));
  request.device = made.number;
  TRY_ASSIGN(const json answer, asker.Ask("attach", request, made.device.get(), kLongestAnswer));
  made.device.Reset();  // the node's alone: with it the mount lives and dies
  TRY(fs::PlaceMount(made, mount.mountpoint));
  if (on_mounted) on_mounted(mount.mountpoint, made.number);
  TRY(CheckServed(mount.mountpoint, made.number));
  return Joined{mount.mountpoint, made.number, ProcessOf(answer)};
}

Result<Joined> MountAsUser(const fs::FuseMountOptions& mount, AttachRequest request,
                           const Asker& asker, const OnMounted& on_mounted) {
  TRY_ASSIGN(UniqueFd device,
             fs::MountByFusermount(mount.mountpoint, fs::FusermountOptions(mount)));
  request.device = fs::DeviceAt(mount.mountpoint);
  if (on_mounted) on_mounted(mount.mountpoint, request.device);
  const auto answer = asker.Ask("attach", request, device.get(), kLongestAnswer);
  device.Reset();
  if (!answer) {
    static_cast<void>(fs::AbortFuse(mount.mountpoint, request.device));
    return answer.error();
  }
  TRY(CheckServed(mount.mountpoint, request.device));
  return Joined{mount.mountpoint, request.device, ProcessOf(*answer)};
}

// One attempt. kUnavailable: another may succeed.
Result<Joined> TryJoin(const Invocation& invocation, const OnMounted& on_mounted) {
  TRY_ASSIGN(const std::string mountpoint, fs::PrepareMountpoint(invocation.options.mountpoint));
  AttachRequest request = MakeAttachRequest(invocation, mountpoint);
  request.mount_namespace = MountNamespace();
  const Asker asker(invocation.options.cache_dir);
  // Whatever the node refuses, it refuses before anything is mounted.
  TRY_ASSIGN(const json plan, asker.Ask("prepare", request, -1, kAnswerLimit));
  fs::FuseMountOptions mount;
  mount.mountpoint = mountpoint;
  mount.source = TextField(plan, "source").value_or("dartfs");
  mount.allow_other = BoolField(plan, "allow_other").value_or(false);
  mount.noexec = BoolField(plan, "noexec").value_or(false);
  return geteuid() == 0 ? MountAsRoot(mount, std::move(request), asker, on_mounted)
                        : MountAsUser(mount, std::move(request), asker, on_mounted);
}

core::Error NeverAnswered(const std::string& cache_dir, const std::string& last) {
  return MakeError(Code::kDeadlineExceeded,
                   "the cache directory " + EscapeForeign(cache_dir) + " is in use by " +
                       LockHolder(cache_dir) + ", which takes no mounts (" + last +
                       "): it may be opening its index, or ending, on a disk that hangs; see its "
                       "log and dmesg");
}

}  // namespace

bool InUse(const std::string& cache_dir) {
  const std::string path = cache_dir + "/lock";
  const UniqueFd lock(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st {};
  // Another user's is refused by whoever tries to become its node.
  if (!lock.valid() || fstat(lock.get(), &st) != 0 || st.st_uid != geteuid()) return false;
  return flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

uint64_t MountNamespace() {
  struct stat st {};
  return stat("/proc/self/ns/mnt", &st) == 0 ? st.st_ino : 0;
}

Result<std::optional<Joined>> JoinNode(const Invocation& invocation, const OnMounted& on_mounted) {
  const std::string& cache_dir = invocation.options.cache_dir;
  const core::TimePoint deadline = core::RealClock().Now() + kNodeLimit;
  while (InUse(cache_dir)) {
    Result<Joined> joined = TryJoin(invocation, on_mounted);
    if (joined) return std::optional(std::move(*joined));
    if (joined.error().code != Code::kUnavailable) return joined.error();
    if (core::RealClock().Now() > deadline) {
      return NeverAnswered(cache_dir, joined.error().context);
    }
    poll(nullptr, 0, kPauseMs);
  }
  return std::optional<Joined>();
}

Status StayJoined(const Joined& joined, Signals& signals) {
  const UniqueFd table(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  while (fs::DeviceAt(joined.mountpoint) == joined.device) {
    std::array<pollfd, 3> polled = {
        {{signals.fd(), POLLIN, 0}, {table.get(), POLLPRI, 0}, {joined.node.get(), POLLIN, 0}}};
    poll(polled.data(), polled.size(), kLookMs);
    const int signal = polled[0].revents != 0 ? signals.Next().value_or(0) : 0;
    if (signal == SIGTERM || signal == SIGINT) {
      const Status unmounted = fs::UnmountFuse(joined.mountpoint, joined.device);
      if (unmounted || unmounted.error().code != Code::kBusy) return unmounted;
      LOG_WARN("{}: detached from the tree; files still open there get errors",
               unmounted.error().context);
      return fs::AbortFuse(joined.mountpoint, joined.device);
    }
    // Its orderly end unmounts first.
    if (polled[2].revents != 0 && fs::DeviceAt(joined.mountpoint) == joined.device) {
      TRY(fs::AbortFuse(joined.mountpoint, joined.device));
      return MakeError(Code::kUnavailable, "the node that served " +
                                               EscapeForeign(joined.mountpoint) +
                                               " has ended; its log may say why");
    }
  }
  return {};
}

}  // namespace dartfs::app
