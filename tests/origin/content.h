// What the origin has to give: files below a root directory, files in memory, and generated
// objects of any size that cost no storage.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "origin/http_text.h"

namespace dartfs::origin {

// Bytes [offset, offset + out.size()) of generated object `seed`.
// Formula: the object is the output of SplitMix64, each 64-bit word in little-endian order. Word i
// (bytes 8i to 8i+7) is mix(seed + (i + 1) * 0x9e3779b97f4a7c15) modulo 2^64, where
// mix(z): z = (z ^ z>>30) * 0xbf58476d1ce4e5b9; z = (z ^ z>>27) * 0x94d049bb133111eb; z ^ z>>31.
// So the size only cuts the stream: objects of one seed are prefixes of one another.
void GenerateBytes(std::uint64_t seed, std::uint64_t offset, char* out, std::size_t size);
std::string GeneratedBytes(std::uint64_t seed, std::uint64_t offset, std::size_t size);

// A file descriptor that is closed with its last owner.
class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Where the bytes of a body are. Cheap to copy; the bytes stay valid while a copy lives.
using Memory = std::shared_ptr<const std::string>;
using File = std::shared_ptr<const FileHandle>;
struct Generated {
  std::uint64_t seed = 0;
};
using Body = std::variant<Memory, File, Generated>;

struct Object {
  Body body;
  std::uint64_t size = 0;
  std::string etag;  // quoted, strong
  std::time_t last_modified = 0;
  std::string content_type;
  Headers headers = {};  // sent besides
};

struct DirectoryEntry {
  std::string name;  // raw bytes
  bool directory = false;
  std::uint64_t size = 0;
  std::time_t last_modified = 0;
  std::string etag;  // empty for a directory
};

enum class FileKind { kAbsent, kDirectory, kObject };
struct Found {
  FileKind kind = FileKind::kAbsent;
  Object object;  // for kObject
};

struct FileOptions {
  std::string content_type = {};  // empty: by the name's extension
  std::string etag = {};          // quoted; empty: a new one for every AddFile
  std::optional<std::time_t> last_modified =
      {};                // none: 2024-01-01 plus a second for every AddFile
  Headers headers = {};  // sent besides
};

// Thread-safe. Paths are URL paths as on the wire. Two spellings of one path (%41 and A) are one
// name; %2F inside a segment is not a slash, and empty segments (//) count.
//
// Looked up in this order: aliases, files in memory, /_gen/<size>/<seed>/<name>, the root
// directory. `size` is decimal or like 4MiB; any name will do. Nothing outside the root is ever
// opened: dot segments, encoded or not, and symbolic links that lead outside are absent.
class Content {
 public:
  // An empty root: only memory and generated objects.
  explicit Content(std::string root);
  ~Content();
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  // True when the root could be opened, or none was asked for.
  bool ok() const { return root_.empty() || root_fd_ >= 0; }

  // Adds or replaces; directories on the way come to be. A replaced file is a new version.
  void AddFile(std::string_view path, std::string bytes, FileOptions options = {});
  void AddGenerated(std::string_view path, std::uint64_t size, std::uint64_t seed,
                    FileOptions options = {});
  bool Remove(std::string_view path);
  // From now on `path` answers with the object that `target` names; an empty target ends that.
  void Alias(std::string_view path, std::string target);

  // Opens what a path names. Blocks for the file system.
  Found Find(std::string_view path) const;
  // The entries of the directory `path`, sorted by name; empty when it is none.
  std::vector<DirectoryEntry> List(std::string_view path) const;

 private:
  Found FindAt(const std::string& key) const;
  Found FindOnDisk(const std::string& key) const;
  std::optional<Found> FindInMemory(const std::string& key) const;
  void Store(std::string_view path, Object object, FileOptions options);
  std::optional<std::string> DiskPath(const std::string& key) const;
  int OpenBelow(const std::string& relative) const;
  bool StatBelow(int dir_fd, const std::string& dir, const std::string& name,
                 struct stat& st) const;
  void ListDisk(const std::string& key, std::map<std::string, DirectoryEntry>& entries) const;
  void ListMemory(const std::string& key, std::map<std::string, DirectoryEntry>& entries) const;

  const std::string root_;
  const int root_fd_;

  mutable std::mutex mu_;
  // Guarded by mu_, keyed by the canonical spelling of the path.
  std::map<std::string, Object> memory_;
  std::map<std::string, std::string> aliases_;
  std::uint64_t generation_ = 0;
};

std::string ContentTypeOf(std::string_view path);

}  // namespace dartfs::origin
