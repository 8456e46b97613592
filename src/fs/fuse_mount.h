// Mountpoints: made ready, mounted by mount(2) with a /dev/fuse of our own, tuned, unmounted.
// Blocking: local system calls only.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::fs {

// What the kernel shows as the type: `mount -t fuse.dartfs`, findmnt.
inline constexpr char kFsType[] = "fuse.dartfs";

struct FuseMountOptions {
  std::string mountpoint;  // absolute and resolved
  std::string source;      // for people, redacted
  bool allow_other = false;
  bool noexec = false;
};

// Whether the path may be mounted on, without changing anything: a directory, neither the root nor
// on one of the kernel's own file systems (proc, sysfs, ...). Fine: a dead mount on it. Errors as
// below.
core::Status CheckMountpoint(const std::string& path);

// The absolute path of the directory that is to be mounted on. A dead mount on it (its daemon has
// gone) is detached first, said in the log. Errors, each with what to do: kNotFound,
// kInvalidArgument (not a directory, or none to mount on), kBusy (a live dartfs mount is there),
// kIo.
core::Result<std::string> PrepareMountpoint(const std::string& path);

// Opens /dev/fuse and mounts it: ro,nosuid,nodev,default_permissions, whatever else is asked for.
// Needs CAP_SYS_ADMIN. The mount is there on return, but answers only once a session serves the
// descriptor.
core::Result<core::UniqueFd> MountFuse(const FuseMountOptions& options);

// The same options for fusermount3, comma-separated and escaped.
std::string FusermountOptions(const FuseMountOptions& options);

// A mount that stands nowhere yet: it ends with its descriptor, however its holder ends.
struct DetachedMount {
  core::UniqueFd device;  // its /dev/fuse
  core::UniqueFd mount;
  dev_t number = 0;  // st_dev of the mount
};

// As MountFuse, but for its place. Needs Linux 5.2 besides.
core::Result<DetachedMount> MakeDetachedMount(const FuseMountOptions& options);

// Puts it on the mountpoint, from then on it stays.
core::Status PlaceMount(const DetachedMount& mount, const std::string& mountpoint);

// Ends the mount of that device at the mountpoint; nothing when something else, or nothing, is
// mounted there now. kBusy when it is in use. Without root through fusermount3.
core::Status UnmountFuse(const std::string& mountpoint, dev_t device);

// The same for a mount in use: takes it out of the tree and, as root, aborts the connection, so
// that whoever still has a file open there gets errors, and no request waits any more.
core::Status AbortFuse(const std::string& mountpoint, dev_t device);

// st_dev of the mount that one sees at the mountpoint, without touching it; 0: none.
dev_t DeviceAt(const std::string& mountpoint);

// Lets the kernel read ahead that far on the mount. Root only; never fatal.
core::Status SetReadAhead(dev_t device, unsigned kib);

}  // namespace dartfs::fs
