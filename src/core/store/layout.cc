#include "core/store/layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr char kCacheDirTag[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This is the block cache of dartfs; backup programs may leave it out.\n";

constexpr std::string_view kVersionStart = "dartfs-cache ";

std::string VersionText(const Grid& grid) {
  return std::string(kVersionStart) + "1\nblock " + std::to_string(grid.block_size) + "\nchunk " +
         std::to_string(grid.chunk_size) + "\ngranule " + std::to_string(grid.granule_size) + "\n";
}

bool Exists(const std::string& path) {
  struct stat st = {};
  return ::lstat(path.c_str(), &st) == 0;
}

// With parents, as `mkdir -p`.
Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    TRY(MakeDirectory(path.substr(0, end)));
  }
  return MakeDirectory(path);
}

// What a start leaves that was killed before it had written `version`, and what any new file system
// has.
bool MayBeInANewCache(std::string_view name) {
  for (const std::string_view known : {".", "..", "lost+found", "lock", "version.new"}) {
    if (name == known) return true;
  }
  return false;
}

Error NoCache(const std::string& dir) {
  return MakeError(Code::kRefused,
                   EscapeForeign(dir) +
                       " is not empty and no cache of dartfs; give another directory, or an empty "
                       "one, with --cache-dir");
}

// Whether a directory is ours to take: a cache, or one with nothing of anybody else's in it.
Status CheckContent(const std::string& dir) {
  const std::string version_path = dir + "/version";
  const auto version = ReadSmallFile(version_path);
  if (version) {
    if (version->starts_with(kVersionStart)) return {};
    if (!TrimAscii(*version).empty()) return NoCache(dir);
    return MakeError(Code::kUnsupported, EscapeForeign(version_path) +
                                             " is empty, hence damaged: remove the cache directory "
                                             "(it is rebuilt), or name another with --cache-dir");
  }
  if (version.error().code != Code::kNotFound) return version.error();
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(dir.c_str()), ::closedir);
  if (opened == nullptr) return ErrnoError(errno, "cannot read " + EscapeForeign(dir));
  errno = 0;
  while (const dirent* const entry = ::readdir(opened.get())) {
    if (MayBeInANewCache(entry->d_name)) continue;
    if (Exists(version_path)) return {};  // by now: another node is making it
    return NoCache(dir);
  }
  if (errno != 0) return ErrnoError(errno, "cannot read " + EscapeForeign(dir));
  return {};
}

Status CheckFileSystem(const std::string& dir) {
  struct statfs fs = {};
  if (::statfs(dir.c_str(), &fs) != 0) return ErrnoError(errno, "statfs " + EscapeForeign(dir));
  const char* const name = RefusedFileSystem(static_cast<uint64_t>(fs.f_type) & 0xFFFFFFFFU);
  if (name == nullptr) return {};
  return MakeError(Code::kUnsupported, "the cache directory " + EscapeForeign(dir) + " lies on " +
                                           name + "; it needs a local file system");
}

Error NotOwn(const std::string& path, const struct stat& st) {
  return MakeError(Code::kRefused, EscapeForeign(path) + " belongs to user " +
                                       std::to_string(st.st_uid) + ", not to user " +
                                       std::to_string(::geteuid()) +
                                       " whose cache it would be: give it to that user (chown -R), "
                                       "remove it, or name another with --cache-dir");
}

Status CheckStat(const std::string& path, const struct stat& st, mode_t type) {
  if ((st.st_mode & S_IFMT) != type || (type == S_IFREG && st.st_nlink != 1)) {
    return MakeError(Code::kRefused,
                     EscapeForeign(path) + " in the cache directory is a link, or no " +
                         (type == S_IFDIR ? "directory" : "file") +
                         ": remove it, or name another cache directory with --cache-dir");
  }
  if (st.st_uid != ::geteuid()) return NotOwn(path, st);
  return {};
}

// Nothing of the directory has been changed before this succeeds.
Status TakeDirectory(const std::string& dir) {
  struct stat st = {};
  if (::stat(dir.c_str(), &st) != 0) return ErrnoError(errno, "stat " + EscapeForeign(dir));
  if (!S_ISDIR(st.st_mode)) return ErrnoError(ENOTDIR, EscapeForeign(dir));
  if (st.st_uid != ::geteuid()) return NotOwn(dir, st);
  TRY(CheckContent(dir));
  if ((st.st_mode & 0077) != 0 && ::chmod(dir.c_str(), 0700) != 0) {
    return ErrnoError(errno, "chmod 0700 " + EscapeForeign(dir));
  }
  return {};
}

Result<UniqueFd> TakeLock(const std::string& dir) {
  const std::string path = dir + "/lock";
  TRY_ASSIGN(UniqueFd fd, OpenOwnFile(path, O_RDWR | O_CREAT));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(errno, "flock " + EscapeForeign(path));
    std::array<char, 32> pid = {};
    const ssize_t bytes = ::pread(fd.get(), pid.data(), pid.size(), 0);
    const std::string_view text(pid.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    return MakeError(Code::kBusy, "cache directory " + EscapeForeign(dir) +
                                      " is in use by the node with PID " +
                                      EscapeForeign(TrimAscii(text)));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoError(errno, "cannot write " + EscapeForeign(path));
  }
  return fd;
}

Status CheckVersion(const std::string& dir, const Grid& grid) {
  const std::string path = dir + "/version";
  const std::string wanted = VersionText(grid);
  const auto found = ReadSmallFile(path);
  if (found) {
    if (*found == wanted) return {};
    return MakeError(Code::kUnsupported, "cache directory " + EscapeForeign(dir) +
                                             " has another format (" +
                                             EscapeForeign(TrimAscii(*found), 120) +
                                             "): remove it, or name another with --cache-dir");
  }
  if (found.error().code != Code::kNotFound) return found.error();
  return WriteFileDurably(path, wanted);
}

}  // namespace

const char* RefusedFileSystem(uint64_t magic) {
  switch (magic) {
    case 0x6969:
      return "NFS";
    case 0xFF534D42:
    case 0xFE534D42:
    case 0x517B:
      return "CIFS";
    case 0x65735546:
      return "FUSE";
    default:
      return nullptr;
  }
}

Result<std::unique_ptr<Layout>> Layout::Open(const std::string& dir, const Grid& grid) {
  TRY(grid.Validate());
  if (dir.empty() || dir[0] != '/') {
    return MakeError(Code::kInvalidArgument,
                     "the cache directory must be an absolute path, not " + EscapeForeign(dir));
  }
  TRY(MakeDirectories(dir));
  TRY(CheckFileSystem(dir));
  TRY(TakeDirectory(dir));
  TRY_ASSIGN(UniqueFd lock, TakeLock(dir));
  TRY(CheckVersion(dir, grid));
  if (!Exists(dir + "/CACHEDIR.TAG")) TRY(WriteFileDurably(dir + "/CACHEDIR.TAG", kCacheDirTag));
  std::unique_ptr<Layout> layout(new Layout(dir, std::move(lock)));
  TRY(MakeDirectory(layout->objects_dir()));
  TRY(CheckOwn(layout->objects_dir(), S_IFDIR));
  return layout;
}

std::string Layout::ObjectPath(const StoreKey& key) const {
  const std::string hex = key.ToHex();
  return dir_ + "/objects/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

Result<FreeSpace> Layout::Free() const {
  struct statvfs fs = {};
  if (::statvfs(dir_.c_str(), &fs) != 0) return ErrnoError(errno, "statvfs");
  FreeSpace free;
  free.total_bytes = uint64_t{fs.f_blocks} * fs.f_frsize;
  free.free_bytes = uint64_t{fs.f_bavail} * fs.f_frsize;
  free.total_inodes = fs.f_files;
  free.free_inodes = fs.f_favail;
  return free;
}

void Layout::Unlock() { ::flock(lock_.get(), LOCK_UN); }

Status MakeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return ErrnoError(errno, "cannot create " + EscapeForeign(path));
}

Status WriteFileDurably(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  {
    const UniqueFd fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return ErrnoError(errno, "cannot create " + EscapeForeign(temporary));
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) {
      return ErrnoError(written < 0 ? errno : EIO, "cannot write " + EscapeForeign(temporary));
    }
    if (::fsync(fd.get()) != 0) return ErrnoError(errno, "fsync " + EscapeForeign(temporary));
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoError(errno, "cannot rename to " + EscapeForeign(path));
  }
  return SyncDirectory(path.substr(0, path.rfind('/')));
}

Result<std::string> ReadSmallFile(const std::string& path) {
  TRY_ASSIGN(const UniqueFd fd, OpenOwnFile(path, O_RDONLY));
  std::string text(64 << 10, '\0');
  const ssize_t bytes = ::pread(fd.get(), text.data(), text.size(), 0);
  if (bytes < 0) return ErrnoError(errno, "cannot read " + EscapeForeign(path));
  text.resize(static_cast<size_t>(bytes));
  return text;
}

Status CheckOwn(const std::string& path, mode_t type) {
  struct stat st = {};
  if (::lstat(path.c_str(), &st) == 0) return CheckStat(path, st, type);
  if (errno == ENOENT) return {};
  return ErrnoError(errno, "stat " + EscapeForeign(path));
}

Result<UniqueFd> OpenOwnFile(const std::string& path, int flags) {
  TRY(CheckOwn(path, S_IFREG));  // for the message
  // Nor would a FIFO in its place be waited for.
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd.valid()) {
    if (errno == ENOENT) return MakeError(Code::kNotFound, EscapeForeign(path));
    return ErrnoError(errno, "cannot open " + EscapeForeign(path));
  }
  struct stat st = {};
  if (::fstat(fd.get(), &st) != 0) return ErrnoError(errno, "fstat " + EscapeForeign(path));
  TRY(CheckStat(path, st, S_IFREG));
  return fd;
}

Status SyncFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return ErrnoError(errno, "cannot open " + EscapeForeign(path));
  if (::fdatasync(fd.get()) != 0) return ErrnoError(errno, "fdatasync " + EscapeForeign(path));
  return {};
}

Status SyncDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "cannot open " + EscapeForeign(path));
  if (::fsync(fd.get()) != 0) return ErrnoError(errno, "fsync " + EscapeForeign(path));
  return {};
}

}  // namespace dartfs::core
