#include "fs/fuse_passthrough.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/unique_fd.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

// linux/fuse.h, kernel 6.9: FUSE_DEV_IOC_BACKING_OPEN and FUSE_DEV_IOC_BACKING_CLOSE.
struct BackingMap {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
constexpr unsigned kDeviceMagic = 229;
constexpr unsigned long kBackingOpen = _IOW(kDeviceMagic, 1, BackingMap);
constexpr unsigned long kBackingClose = _IOW(kDeviceMagic, 2, uint32_t);

std::string WhyRefused(int error) {
  switch (error) {
    case EPERM:
      return "no privilege for it (CAP_SYS_ADMIN)";
    case ELOOP:
      return "the cache directory lies on a file system that stacks on another, like overlayfs; "
             "put it on a disk's own";
    case EOPNOTSUPP:
    case ENOTTY:
    case EINVAL:
      return "the kernel has none (it takes 6.9 or later with CONFIG_FUSE_PASSTHROUGH)";
    default:
      return "the kernel refuses it";
  }
}

class KernelBackingFiles final : public BackingFiles {
 public:
  explicit KernelBackingFiles(core::UniqueFd device) : device_(std::move(device)) {}

  Result<int32_t> Register(int fd) override {
    BackingMap map{fd, 0, 0};
    const int id = ioctl(device_.get(), kBackingOpen, &map);
    if (id > 0) return id;
    const int error = id == 0 ? EINVAL : errno;
    return core::ErrnoError(error, WhyRefused(error));
  }

  void Unregister(int32_t id) override {
    auto number = static_cast<uint32_t>(id);
    if (ioctl(device_.get(), kBackingClose, &number) != 0) {
      LOG_DEBUG("passthrough: number {} could not be given back: errno {}", id, errno);
    }
  }

 private:
  const core::UniqueFd device_;
};

}  // namespace

Result<std::shared_ptr<BackingFiles>> MakeBackingFiles(int device) {
  core::UniqueFd own(fcntl(device, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return core::ErrnoError(errno, "duplicating the descriptor of /dev/fuse");
  return std::shared_ptr<BackingFiles>(std::make_shared<KernelBackingFiles>(std::move(own)));
}

core::Status ProbePassthrough(BackingFiles& files, const std::string& probe_file) {
  const core::UniqueFd fd(open(probe_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return core::ErrnoError(errno, core::EscapeForeign(probe_file));
  const Result<int32_t> id = files.Register(fd.get());
  if (!id) return id.error();
  files.Unregister(*id);
  return {};
}

}  // namespace dartfs::fs
