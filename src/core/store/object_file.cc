#include "core/store/object_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/buffer.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

bool IsOwnFile(const struct stat& st) { return S_ISREG(st.st_mode) && st.st_uid == ::geteuid(); }

// kNotFound where it is absent; kCorrupt where it is no file of ours: a FIFO, a device, a
// directory, a link, another user's. None of them is waited for.
Result<UniqueFd> OpenOwn(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  const int sys_errno = errno;
  struct stat st = {};
  const int known = fd.valid() ? ::fstat(fd.get(), &st) : ::lstat(path.c_str(), &st);
  if (known == 0 && !IsOwnFile(st)) {
    return MakeError(Code::kCorrupt, EscapeForeign(path) + " is no file of the cache");
  }
  if (!fd.valid()) {
    if (sys_errno == ENOENT) return MakeError(Code::kNotFound, EscapeForeign(path));
    return ErrnoError(sys_errno, "cannot open " + EscapeForeign(path));
  }
  // With O_NONBLOCK, io_uring of some kernels answers EAGAIN for what is not in the page cache.
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) return ErrnoError(errno, "fcntl " + EscapeForeign(path));
  return fd;
}

// True once the name is free.
bool RemoveForeign(const Error& error, const std::string& path) {
  const Status removed = RemoveFile(path);
  if (removed) {
    LOG_WARN("{}: removed, its blocks are fetched again", error.context);
  } else {
    LOG_WARN("{}: {}", error.context, removed.error().ToString());
  }
  return removed.has_value();
}

Result<UniqueFd> OpenOrCreate(const std::string& path) {
  auto fd = OpenOwn(path, O_RDWR | O_CREAT);
  if (fd) return fd;
  if (fd.error().code == Code::kNotFound) {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      return ErrnoError(errno, "cannot create " + EscapeForeign(parent));
    }
  } else if (fd.error().code != Code::kCorrupt || !RemoveForeign(fd.error(), path)) {
    return fd;
  }
  return OpenOwn(path, O_RDWR | O_CREAT);
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
  UniqueFd opened = Reopen(O_WRONLY | O_DIRECT);
  if (!opened.valid()) {
    refuses_direct_ = errno == EINVAL;  // the file system: all writes are buffered then
    return nullptr;
  }
  direct = std::make_shared<const UniqueFd>(std::move(opened));
  direct_ = direct;
  return direct;
}

UniqueFd ObjectFile::Reopen(int flags) const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd());
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

Result<std::shared_ptr<ObjectFile>> ObjectFile::Open(const std::string& path) {
  auto fd = OpenOwn(path, O_RDWR);
  if (!fd && (fd.error().sys_errno == EROFS || fd.error().sys_errno == EPERM)) {
    fd = OpenOwn(path, O_RDONLY);  // places can't be freed then, but what is there can be read
  }
  if (!fd) {
    Error error = std::move(fd).error();
    if (error.code != Code::kCorrupt) return error;
    RemoveForeign(error, path);
    return MakeError(Code::kNotFound, std::move(error.context));
  }
  auto file = std::make_shared<ObjectFile>();
  file->fd_ = *std::move(fd);
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
  // An empty directory goes too; one that holds anything may be a mount point.
  if (errno == EISDIR && ::rmdir(path.c_str()) == 0) return {};
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
