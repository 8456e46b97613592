#include "fs/fuse_mount.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "fs/errno_map.h"
#include "fs/fuse_ops.h"
#include "fs/fusermount.h"
#include "fs/mount_info.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::ErrnoError;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;

struct FreeDeleter {
  void operator()(char* p) const { std::free(p); }
};

Result<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, FreeDeleter> real(realpath(path.c_str(), nullptr));
  if (real) return std::string(real.get());
  const int error = errno;
  const char* const hint = error == ENOENT ? " (a mountpoint has to exist: create it first)" : "";
  return ErrnoError(error, EscapeForeign(path) + hint);
}

// The last component is not followed: what is mounted there may be dead.
Result<std::string> ResolveWithoutTouching(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return RealPath(path);
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  TRY_ASSIGN(const std::string real_parent, RealPath(parent));
  return real_parent == "/" ? "/" + name : real_parent + "/" + name;
}

// 0, or the errno of looking at it.
int LookErrno(const std::string& path, struct stat* st) {
  return stat(path.c_str(), st) == 0 ? 0 : errno;
}

// True: a dead mount was detached, and what lies below may be another one.
Result<bool> DetachDeadMount(const std::string& path) {
  // Not stat(2): the kernel answers that from the attributes it keeps, also for a dead mount.
  struct statfs facts {};
  if (statfs(path.c_str(), &facts) == 0 || !IsDeadMount(errno)) return false;
  if (geteuid() != 0) {
    if (!UnmountByFusermount(path, /*lazy=*/true)) {
      return MakeError(Code::kBusy,
                       "a mount whose daemon has gone lies on " + EscapeForeign(path) +
                           ", and it is not this user's; whose it is has to detach it first");
    }
  } else if (umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
    return ErrnoError(errno, "detaching the dead mount on " + EscapeForeign(path));
  }
  LOG_WARN("{}: detached a mount whose daemon has gone", EscapeForeign(path));
  return true;
}

// Where the kernel shows itself: what is mounted there takes it from the whole machine.
bool IsKernelFs(const struct statfs& facts) {
  // Not in <linux/magic.h>: mqueue, configfs, fusectl, rpc_pipefs (the kernel's sources of each).
  constexpr uint64_t kMagics[] = {
      PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,      TRACEFS_MAGIC, SECURITYFS_MAGIC,
      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC,
      EFIVARFS_MAGIC,     BINFMTFS_MAGIC,      SELINUX_MAGIC,      NSFS_MAGIC,    0x19800202,
      0x62656570,         0x65735543,          0x67596969,
  };
  const auto type = static_cast<uint32_t>(facts.f_type);
  return std::find(std::begin(kMagics), std::end(kMagics), type) != std::end(kMagics);
}

// `path` is resolved.
Status RefuseSystemPlace(const std::string& path) {
  const std::string shown = EscapeForeign(path);
  if (path == "/" || path == "/dev") {
    return MakeError(Code::kInvalidArgument,
                     "the mountpoint may not be " + shown +
                         ": the system would be without it; choose a directory of its own");
  }
  struct statfs facts {};
  if (statfs(path.c_str(), &facts) != 0) return ErrnoError(errno, shown);
  if (!IsKernelFs(facts)) return {};
  return MakeError(Code::kInvalidArgument,
                   "the mountpoint may not be " + shown +
                       ": it lies on one of the kernel's own file systems (proc, sysfs, cgroup and "
                       "the like); choose a directory on a real one");
}

Status RefuseOddPlace(const std::string& path) {
  struct stat st {};
  if (const int error = LookErrno(path, &st)) return ErrnoError(error, EscapeForeign(path));
  if (!S_ISDIR(st.st_mode)) {
    return MakeError(Code::kInvalidArgument,
                     "the mountpoint " + EscapeForeign(path) + " is not a directory");
  }
  return RefuseSystemPlace(path);
}

Status RefuseLiveMount(const std::string& path) {
  const auto top = TopMountAt(ReadMountInfo(), path);
  if (!top || top->type != kFsType) return {};
  return MakeError(Code::kBusy, EscapeForeign(path) + " already shows " +
                                    EscapeForeign(top->source) +
                                    " (a live dartfs mount); umount it first, or choose another "
                                    "mountpoint");
}

Result<core::UniqueFd> OpenFuseDevice() {
  core::UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device.valid()) return device;
  return ErrnoError(errno,
                    "/dev/fuse (load the module with modprobe fuse, or give the container the "
                    "device)");
}

std::string KernelOptions(const FuseMountOptions& options, int device) {
  std::string text = "fd=" + std::to_string(device) +
                     ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                     ",group_id=" + std::to_string(getegid()) +
                     ",default_permissions,max_read=" + std::to_string(kMaxReadBytes);
  if (options.allow_other) text += ",allow_other";
  return text;
}

bool IsMountedThere(const std::string& mountpoint, dev_t device) {
  return device != 0 && DeviceAt(mountpoint) == device;
}

// One option of a file system that is being made. What the kernel has to say of it is in its log.
Status Configure(int fs, unsigned command, const char* key, const char* value) {
  if (fsconfig(fs, command, key, value, 0) == 0) return {};
  return ErrnoError(errno, std::string("mounting: ") + (key == nullptr ? "fuse" : key));
}

// libfuse splits its options at commas; a backslash keeps one.
std::string EscapeOption(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

Status CheckMountpoint(const std::string& path) {
  struct statfs facts {};
  if (statfs(path.c_str(), &facts) != 0 && IsDeadMount(errno)) return {};
  TRY_ASSIGN(const std::string real, RealPath(path));
  return RefuseOddPlace(real);
}

Result<std::string> PrepareMountpoint(const std::string& asked) {
  constexpr int kMaxLayers = 16;
  TRY_ASSIGN(std::string path, ResolveWithoutTouching(asked));
  for (int layer = 0; layer < kMaxLayers; ++layer) {
    TRY_ASSIGN(const bool detached, DetachDeadMount(path));
    if (!detached) break;
  }
  TRY_ASSIGN(path, RealPath(asked));  // a symbolic link, once nothing dead hides it
  TRY(RefuseOddPlace(path));
  TRY(RefuseLiveMount(path));
  return path;
}

Result<core::UniqueFd> MountFuse(const FuseMountOptions& options) {
  TRY_ASSIGN(core::UniqueFd device, OpenFuseDevice());
  const std::string data = KernelOptions(options, device.get());
  unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (options.noexec) flags |= MS_NOEXEC;
  if (mount(options.source.c_str(), options.mountpoint.c_str(), kFsType, flags, data.c_str()) !=
      0) {
    const int error = errno;
    const char* const hint = error == EPERM ? " (in a container it takes CAP_SYS_ADMIN)" : "";
    return ErrnoError(error, "mounting on " + EscapeForeign(options.mountpoint) + hint);
  }
  return device;
}

std::string FusermountOptions(const FuseMountOptions& options) {
  std::string text =
      "ro,nosuid,nodev,default_permissions,subtype=dartfs,fsname=" + EscapeOption(options.source);
  text += ",max_read=" + std::to_string(kMaxReadBytes);
  if (options.allow_other) text += ",allow_other";
  if (options.noexec) text += ",noexec";
  return text;
}

Result<DetachedMount> MakeDetachedMount(const FuseMountOptions& options) {
  DetachedMount made;
  TRY_ASSIGN(made.device, OpenFuseDevice());
  const core::UniqueFd fs(fsopen("fuse", FSOPEN_CLOEXEC));
  if (!fs.valid()) {
    return ErrnoError(errno,
                      "fsopen (a further mount of a node takes Linux 5.2, and in a "
                      "container CAP_SYS_ADMIN)");
  }
  const std::string id = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  const std::string device = std::to_string(made.device.get());
  const std::string max_read = std::to_string(kMaxReadBytes);
  const std::pair<const char*, const char*> texts[] = {
      {"source", options.source.c_str()},
      {"subtype", "dartfs"},
      {"fd", device.c_str()},
      {"rootmode", "40000"},
      {"user_id", id.c_str()},
      {"group_id", group.c_str()},
      {"max_read", max_read.c_str()},
  };
  for (const auto& [key, value] : texts) {
    TRY(Configure(fs.get(), FSCONFIG_SET_STRING, key, value));
  }
  TRY(Configure(fs.get(), FSCONFIG_SET_FLAG, "default_permissions", nullptr));
  TRY(Configure(fs.get(), FSCONFIG_SET_FLAG, "ro", nullptr));
  if (options.allow_other) TRY(Configure(fs.get(), FSCONFIG_SET_FLAG, "allow_other", nullptr));
  TRY(Configure(fs.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr));
  unsigned attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (options.noexec) attributes |= MOUNT_ATTR_NOEXEC;
  made.mount.Reset(fsmount(fs.get(), FSMOUNT_CLOEXEC, attributes));
  if (!made.mount.valid()) return ErrnoError(errno, "fsmount");
  // DONT_SYNC: nobody serves it yet.
  struct statx facts {};
  if (statx(made.mount.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) != 0) {
    return ErrnoError(errno, "statx");
  }
  made.number = makedev(facts.stx_dev_major, facts.stx_dev_minor);
  return made;
}

Status PlaceMount(const DetachedMount& mount, const std::string& mountpoint) {
  if (move_mount(mount.mount.get(), "", AT_FDCWD, mountpoint.c_str(), MOVE_MOUNT_F_EMPTY_PATH) ==
      0) {
    return {};
  }
  return ErrnoError(errno, "mounting on " + EscapeForeign(mountpoint));
}

dev_t DeviceAt(const std::string& mountpoint) {
  const auto top = TopMountAt(ReadMountInfo(), mountpoint);
  return top ? makedev(top->major, top->minor) : 0;
}

Status UnmountFuse(const std::string& mountpoint, dev_t device) {
  if (!IsMountedThere(mountpoint, device)) return {};
  if (geteuid() != 0) return UnmountByFusermount(mountpoint, /*lazy=*/false);
  if (umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW) == 0) return {};
  if (errno == EBUSY) return MakeError(Code::kBusy, EscapeForeign(mountpoint) + " is in use");
  return ErrnoError(errno, "unmounting " + EscapeForeign(mountpoint));
}

Status AbortFuse(const std::string& mountpoint, dev_t device) {
  if (!IsMountedThere(mountpoint, device)) return {};
  if (geteuid() != 0) return UnmountByFusermount(mountpoint, /*lazy=*/true);
  if (umount2(mountpoint.c_str(), MNT_DETACH | MNT_FORCE | UMOUNT_NOFOLLOW) == 0) return {};
  return ErrnoError(errno, "detaching " + EscapeForeign(mountpoint));
}

Status SetReadAhead(dev_t device, unsigned kib) {
  const std::string path = "/sys/class/bdi/" + std::to_string(major(device)) + ":" +
                           std::to_string(minor(device)) + "/read_ahead_kb";
  const core::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(kib);
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) < 0) return ErrnoError(errno, path);
  return {};
}

}  // namespace dartfs::fs
