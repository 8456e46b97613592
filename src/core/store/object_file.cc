#include "core/store/object_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/buffer.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

Result<UniqueFd> OpenOrCreate(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(::open(path.c_str(), kFlags, 0600));
  if (!fd.valid() && errno == ENOENT) {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      return ErrnoError(errno, "cannot create " + EscapeForeign(parent));
    }
    fd.Reset(::open(path.c_str(), kFlags, 0600));
  }
  if (!fd.valid()) return ErrnoError(errno, "cannot create " + EscapeForeign(path));
  return fd;
}

}  // namespace

Result<std::shared_ptr<ObjectFile>> ObjectFile::Create(const std::string& path, uint64_t size) {
  auto file = std::make_shared<ObjectFile>();
  file->for_write_ = true;
  TRY_ASSIGN(file->fd_, OpenOrCreate(path));
  struct stat st = {};
  if (::fstat(file->fd(), &st) != 0) return ErrnoError(errno, "fstat " + EscapeForeign(path));
  if (static_cast<uint64_t>(st.st_size) != size &&
      ::ftruncate(file->fd(), static_cast<off_t>(size)) != 0) {
    return ErrnoError(errno, "cannot extend " + EscapeForeign(path));
  }
  file->refuses_direct_ = size < kPageSize;  // nothing of it is a whole page
  return file;
}

std::shared_ptr<const UniqueFd> ObjectFile::ForDirectWrites() {
  auto direct = direct_.lock();
  if (direct != nullptr || refuses_direct_) return direct;
  // Not by its name, which may be another file's by now.
  const std::string path = "/proc/self/fd/" + std::to_string(fd());
  UniqueFd opened(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
  if (!opened.valid()) {
    refuses_direct_ = errno == EINVAL;  // the file system: all writes are buffered then
    return nullptr;
  }
  direct = std::make_shared<const UniqueFd>(std::move(opened));
  direct_ = direct;
  return direct;
}

Result<std::shared_ptr<ObjectFile>> ObjectFile::Open(const std::string& path) {
  auto file = std::make_shared<ObjectFile>();
  file->fd_.Reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file->fd_.valid()) {
    if (errno == ENOENT) return MakeError(Code::kNotFound, EscapeForeign(path));
    return ErrnoError(errno, "cannot open " + EscapeForeign(path));
  }
  return file;
}

Status PunchHole(int fd, uint64_t offset, uint64_t bytes) {
  while (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return ErrnoError(errno, "cannot punch a hole");
  }
  return {};
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return ErrnoError(errno, "cannot remove " + EscapeForeign(path));
}

Status CheckHoles(const std::string& dir) {
  const std::string path = dir + "/.holes";
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) {
    if (errno == ENOSPC || errno == EDQUOT) return {};  // full, which is another matter
    return ErrnoError(errno, "cannot create " + EscapeForeign(path));
  }
  const Status punched = PunchHole(fd.get(), 0, kPageSize);
  TRY(RemoveFile(path));
  if (punched || (punched.error().sys_errno != EOPNOTSUPP && punched.error().sys_errno != ENOSYS)) {
    return {};
  }
  return MakeError(Code::kUnsupported, "the file system of " + EscapeForeign(dir) +
                                           " has no sparse files; name another with --cache-dir");
}

}  // namespace dartfs::core
