// Catalog: a file that spells out a tree of names and the URLs they mean (CATALOG.md), parsed.
// Immutable, thread-safe, and compact: some 60 bytes an entry beside its name and URL.
//
// Entries are numbers. The root is kRoot; the children of a directory are consecutive and sorted by
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dartfs::fs {

inline constexpr size_t kMaxCatalogBytes = size_t{512} << 20;
inline constexpr size_t kMaxCatalogEntries = 4'000'000;  // files and directories
inline constexpr size_t kMaxCatalogLineBytes = 32 * 1024;
inline constexpr size_t kMaxCatalogDepth = 128;  // components of a path

class Catalog {
 public:
  using Id = uint32_t;
  static constexpr Id kRoot = 0;
  struct Range {
    Id first = 0, last = 0;  // [first, last)
  };

  // kInvalidArgument with "<file>:<line>: " and what would be right. `file` is for messages only.
  // Pure.
  static core::Result<std::shared_ptr<const Catalog>> Parse(std::string_view text,
                                                            std::string_view file, int64_t mtime);
  // The same of a regular file. Blocking. kIo, kTooLarge, and as above.
  static core::Result<std::shared_ptr<const Catalog>> Load(const std::string& path);

  // The directory at a path that is "" (the root) or ends in '/'.
  std::optional<Id> FindDir(std::string_view path) const;
  std::optional<Id> Find(Id dir, std::string_view name) const;
  Range ChildrenOf(Id dir) const;

  bool IsDir(Id id) const { return entries_[id].is_dir; }
  std::string_view NameOf(Id id) const;
  // Of files only.
  std::string_view UrlOf(Id id) const;
  std::optional<uint64_t> SizeOf(Id id) const;
  std::string DigestOf(Id id) const;  // "sha256:<hex>", "" for none
  uint32_t LineOf(Id id) const { return entries_[id].line; }

  const std::string& file() const { return file_; }
  int64_t mtime() const { return mtime_; }  // of the file, seconds since the epoch
  size_t files() const { return files_; }
  size_t memory_bytes() const;

 private:
  friend class CatalogBuilder;
  static constexpr uint64_t kNoSize = UINT64_MAX;
  struct Entry {
    uint64_t text = 0;        // in text_: name, then a file's URL, then its digest's bytes
    uint64_t size = kNoSize;  // bytes
    Id first_child = 0;
    uint32_t children = 0;
    uint32_t line = 0;
    uint16_t url_bytes = 0;
    uint8_t name_bytes = 0;
    uint8_t digest_bytes = 0;  // 32: SHA-256, 64: SHA-512
    bool is_dir = false;
  };

  Catalog() = default;

  std::string file_;
  int64_t mtime_ = 0;
  size_t files_ = 0;
  std::vector<Entry> entries_;
  std::string text_;
};

}  // namespace dartfs::fs
