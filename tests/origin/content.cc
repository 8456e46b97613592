#include "origin/content.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "origin/http_text.h"

namespace dartfs::origin {
namespace {

constexpr std::string_view kGenerated = "/_gen/";
constexpr std::time_t kEpoch2024 = 1704067200;

std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint64_t Word(std::uint64_t seed, std::uint64_t index) {
  return htole64(Mix(seed + (index + 1) * 0x9e3779b97f4a7c15U));
}

// One spelling per path: each segment decoded and encoded again.
std::string Canonical(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    out += "/" + PercentEncode(PercentDecode(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return out;
}

Object MakeGenerated(std::uint64_t size, std::uint64_t seed, std::string_view name) {
  Object object;
  object.body = Generated{seed};
  object.size = size;
  object.etag = fmt::format("\"gen-{:x}-{:x}\"", size, seed);
  object.last_modified = kEpoch2024 + static_cast<std::time_t>(seed % 86400);
  object.content_type = ContentTypeOf(name);
  return object;
}

// /_gen/<size>/<seed>/<name>, canonical.
std::optional<Object> ParseGenerated(std::string_view key) {
  if (key.substr(0, kGenerated.size()) != kGenerated) return std::nullopt;
  std::string_view rest = key.substr(kGenerated.size());
  const std::size_t a = rest.find('/');
  if (a == std::string_view::npos) return std::nullopt;
  const std::size_t b = rest.find('/', a + 1);
  if (b == std::string_view::npos || b + 1 == rest.size()) return std::nullopt;
  const auto size = ParseSize(rest.substr(0, a));
  const auto seed = ParseNumber(rest.substr(a + 1, b - a - 1));
  if (!size || !seed) return std::nullopt;
  return MakeGenerated(*size, *seed, key);
}

std::string EtagOf(const struct stat& st) {
  return fmt::format("\"{:x}-{:x}-{:x}.{:x}\"", st.st_ino, st.st_size, st.st_mtim.tv_sec,
                     st.st_mtim.tv_nsec);
}

}  // namespace

void GenerateBytes(std::uint64_t seed, std::uint64_t offset, char* out, std::size_t size) {
  std::uint64_t index = offset / 8;
  if (const std::size_t skip = offset % 8; skip != 0 && size != 0) {
    const std::uint64_t word = Word(seed, index++);
    const std::size_t n = std::min(8 - skip, size);
    std::memcpy(out, reinterpret_cast<const char*>(&word) + skip, n);
    out += n;
    size -= n;
  }
  for (; size >= 8; size -= 8, out += 8) {
    const std::uint64_t word = Word(seed, index++);
    std::memcpy(out, &word, 8);
  }
  if (size != 0) {
    const std::uint64_t word = Word(seed, index);
    std::memcpy(out, &word, size);
  }
}

std::string GeneratedBytes(std::uint64_t seed, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  GenerateBytes(seed, offset, out.data(), size);
  return out;
}

FileHandle::~FileHandle() { close(fd_); }

Content::Content(std::string root)
    : root_(std::move(root)),
      root_fd_(root_.empty() ? -1 : open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

Content::~Content() {
  if (root_fd_ >= 0) close(root_fd_);
}

void Content::Store(std::string_view path, Object object, FileOptions options) {
  const std::lock_guard lock(mu_);
  ++generation_;
  object.content_type =
      options.content_type.empty() ? ContentTypeOf(path) : std::move(options.content_type);
  object.etag =
      options.etag.empty() ? fmt::format("\"mem-{}\"", generation_) : std::move(options.etag);
  object.last_modified =
      options.last_modified.value_or(kEpoch2024 + static_cast<std::time_t>(generation_));
  object.headers = std::move(options.headers);
  memory_[Canonical(path)] = std::move(object);
}

void Content::AddFile(std::string_view path, std::string bytes, FileOptions options) {
  Object object;
  object.size = bytes.size();
  object.body = std::make_shared<const std::string>(std::move(bytes));
  Store(path, std::move(object), std::move(options));
}

void Content::AddGenerated(std::string_view path, std::uint64_t size, std::uint64_t seed,
                           FileOptions options) {
  Store(path, MakeGenerated(size, seed, path), std::move(options));
}

bool Content::Remove(std::string_view path) {
  const std::lock_guard lock(mu_);
  return memory_.erase(Canonical(path)) != 0;
}

void Content::Alias(std::string_view path, std::string target) {
  const std::lock_guard lock(mu_);
  if (target.empty()) {
    aliases_.erase(Canonical(path));
  } else {
    aliases_[Canonical(path)] = Canonical(target);
  }
}

Found Content::Find(std::string_view path) const {
  std::string key = Canonical(path);
  {
    const std::lock_guard lock(mu_);
    if (const auto it = aliases_.find(key); it != aliases_.end()) key = it->second;
  }
  return FindAt(key);
}

Found Content::FindAt(const std::string& key) const {
  if (auto found = FindInMemory(key)) return std::move(*found);
  if (key == "/") return {FileKind::kDirectory, {}};
  if (auto object = ParseGenerated(key)) return {FileKind::kObject, std::move(*object)};
  return FindOnDisk(key);
}

std::optional<Found> Content::FindInMemory(const std::string& key) const {
  const std::lock_guard lock(mu_);
  if (const auto it = memory_.find(key); it != memory_.end()) {
    return Found{FileKind::kObject, it->second};
  }
  // A directory is whatever has a file below it.
  const std::string below = key.back() == '/' ? key : key + "/";
  const auto it = memory_.lower_bound(below);
  if (it != memory_.end() && it->first.compare(0, below.size(), below) == 0) {
    return Found{FileKind::kDirectory, {}};
  }
  return std::nullopt;
}

std::optional<std::string> Content::DiskPath(const std::string& key) const {
  if (root_fd_ < 0) return std::nullopt;
  std::string out = ".";
  std::string_view rest = key;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string name = PercentDecode(rest.substr(0, end));
    rest.remove_prefix(end);
    if (name.empty() && rest.empty()) break;  // the slash at the end
    if (name.empty() || name == "." || name == "..") return std::nullopt;
    if (name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) return std::nullopt;
    out += "/" + name;
  }
  return out;
}

int Content::OpenBelow(const std::string& relative) const {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH;
  const long fd = syscall(SYS_openat2, root_fd_, relative.c_str(), &how, sizeof how);
  if (fd >= 0) return static_cast<int>(fd);
  // Containers refuse openat2. The path has no dot segments; without it a link is not followed.
  if (errno == ENOSYS || errno == EPERM) {
    return openat(root_fd_, relative.c_str(), kFlags | O_NOFOLLOW);
  }
  return -1;
}

Found Content::FindOnDisk(const std::string& key) const {
  const auto relative = DiskPath(key);
  const int fd = relative ? OpenBelow(*relative) : -1;
  if (fd < 0) return {};
  auto handle = std::make_shared<const FileHandle>(fd);
  struct stat st {};
  if (fstat(fd, &st) != 0) return {};
  if (S_ISDIR(st.st_mode)) return {FileKind::kDirectory, {}};
  if (!S_ISREG(st.st_mode) || key.back() == '/') return {};
  Object object;
  object.body = std::move(handle);
  object.size = static_cast<std::uint64_t>(st.st_size);
  object.etag = EtagOf(st);
  object.last_modified = st.st_mtim.tv_sec;
  object.content_type = ContentTypeOf(key);
  return {FileKind::kObject, std::move(object)};
}

// Follows a symbolic link only as far as the root.
bool Content::StatBelow(int dir_fd, const std::string& dir, const std::string& name,
                        struct stat& st) const {
  if (fstatat(dir_fd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!S_ISLNK(st.st_mode)) return true;
  const int fd = OpenBelow(dir + "/" + name);
  if (fd < 0) return false;
  const bool ok = fstat(fd, &st) == 0;
  close(fd);
  return ok;
}

std::vector<DirectoryEntry> Content::List(std::string_view path) const {
  std::string key = Canonical(path);
  if (key.empty() || key.back() != '/') key += '/';
  std::map<std::string, DirectoryEntry> entries;
  ListDisk(key, entries);
  ListMemory(key, entries);
  std::vector<DirectoryEntry> out;
  out.reserve(entries.size());
  for (auto& [name, entry] : entries) out.push_back(std::move(entry));
  return out;
}

void Content::ListDisk(const std::string& key,
                       std::map<std::string, DirectoryEntry>& entries) const {
  const auto relative = DiskPath(key);
  const int fd = relative ? OpenBelow(*relative) : -1;
  if (fd < 0) return;
  DIR* dir = fdopendir(fd);
  if (dir == nullptr) {
    close(fd);
    return;
  }
  while (const dirent* item = readdir(dir)) {
    const std::string name = item->d_name;
    struct stat st {};
    if (name == "." || name == ".." || !StatBelow(fd, *relative, name, st)) continue;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) continue;
    const bool directory = S_ISDIR(st.st_mode);
    entries[name] = {name, directory, directory ? 0 : static_cast<std::uint64_t>(st.st_size),
                     st.st_mtim.tv_sec, directory ? "" : EtagOf(st)};
  }
  closedir(dir);
}

void Content::ListMemory(const std::string& key,
                         std::map<std::string, DirectoryEntry>& entries) const {
  const std::lock_guard lock(mu_);
  for (auto it = memory_.lower_bound(key); it != memory_.end(); ++it) {
    if (it->first.compare(0, key.size(), key) != 0) break;
    const std::string rest = it->first.substr(key.size());
    const std::size_t slash = rest.find('/');
    const std::string name = PercentDecode(rest.substr(0, slash));
    const Object& object = it->second;
    if (name.empty()) continue;
    if (slash == std::string::npos) {
      entries[name] = {name, false, object.size, object.last_modified, object.etag};
    } else {
      entries[name] = {name, true, 0, object.last_modified, ""};
    }
  }
}

std::string ContentTypeOf(std::string_view path) {
  struct Type {
    std::string_view extension;
    const char* type;
  };
  static constexpr std::array<Type, 10> kTypes = {{{".html", "text/html"},
                                                   {".txt", "text/plain"},
                                                   {".md", "text/plain"},
                                                   {".tsv", "text/tab-separated-values"},
                                                   {".json", "application/json"},
                                                   {".xml", "application/xml"},
                                                   {".gz", "application/gzip"},
                                                   {".tar", "application/x-tar"},
                                                   {".png", "image/png"},
                                                   {".zip", "application/zip"}}};
  for (const Type& type : kTypes) {
    if (path.size() > type.extension.size() &&
        path.substr(path.size() - type.extension.size()) == type.extension) {
      return type.type;
    }
  }
  return "application/octet-stream";
}

}  // namespace dartfs::origin
