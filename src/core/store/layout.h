// Layout: the cache directory itself (FORMAT.md, "Directory"): what is refused, the lock, and where
// things lie. The lock is held from Open until the Layout is dropped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/grid.h"
#include "core/base/result.h"
#include "core/base/store_key.h"
#include "core/base/unique_fd.h"

namespace dartfs::core {

// What statvfs says, in bytes and inodes. 0 totals: the file system does not tell.
struct FreeSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t total_inodes = 0;
  uint64_t free_inodes = 0;
};

class Layout {
 public:
  // Creates what is absent. kBusy: locked, the context names the PID; kUnsupported: another format
  // or grid, or a file system that is refused; kRefused: the directory or something in it belongs
  // to another user, or is a link, or it holds other things than a cache (then nothing in it has
  // been touched, nor has its mode). Blocking.
  static Result<std::unique_ptr<Layout>> Open(const std::string& dir, const Grid& grid);
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  const std::string& dir() const { return dir_; }
  std::string objects_dir() const { return dir_ + "/objects"; }
  std::string index_dir() const { return dir_ + "/index"; }
  // objects/ab/<30 hex>
  std::string ObjectPath(const StoreKey& key) const;

  Result<FreeSpace> Free() const;
  // Of the lock file; any descriptor on the cache's file system would do.
  int lock_fd() const { return lock_.get(); }
  // Another node may have the directory from now on.
  void Unlock();

 private:
  Layout(std::string dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}

  const std::string dir_;
  const UniqueFd lock_;
};

// Why a file system of this statfs magic can't hold a cache; nullptr where it can.
const char* RefusedFileSystem(uint64_t magic);

// Small files, written whole or not at all: a temporary one, fsync, rename, fsync of the directory.
Status WriteFileDurably(const std::string& path, const std::string& text);
// kNotFound where it is absent. Up to 64 KiB.
Result<std::string> ReadSmallFile(const std::string& path);
Status SyncDirectory(const std::string& path);
// fdatasync.
Status SyncFile(const std::string& path);
// What the cache reads and overwrites must be what the effective user made there, and no link to
// anything else: kRefused. Absent is fine.
Status CheckOwn(const std::string& path, mode_t type);
// The same of a file, opened. kNotFound where it is absent.
Result<UniqueFd> OpenOwnFile(const std::string& path, int flags);
// Present is fine.
Status MakeDirectory(const std::string& path);

}  // namespace dartfs::core
