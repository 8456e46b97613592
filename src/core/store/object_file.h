// ObjectFile: an object's sparse file, open: one descriptor for buffered I/O, and one for O_DIRECT
// writes while there are any. Shared by the operations under way, closed with the last of them.
// Thread-safe but for ForDirectWrites, which is one thread's.
//
// Writes go past the page cache: on the machines tried a gigabyte costs 0.05 core seconds that way,
// 0.3 with RWF_DONTCACHE and 0.25 to 3 buffered, and what has just been fetched is served from
// memory anyway. What isn't whole pages (the end of an object's last block) is written buffered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::core {

class ObjectFile {
 public:
  // Made where it is absent, and `size` bytes long afterwards (sparse). What stands in its place
  // and is no file of ours (a FIFO, a device, a link, an empty directory) is removed.
  static Result<std::shared_ptr<ObjectFile>> Create(const std::string& path, uint64_t size);
  // kNotFound where it is absent, or no file of ours stood in its place, which is removed. For
  // reading alone where the disk takes no writes (EROFS, EPERM): holes can't be punched then. A
  // length that differs is left to the reads to find.
  static Result<std::shared_ptr<ObjectFile>> Open(const std::string& path);

  int fd() const { return fd_.get(); }
  // Whether Create made it, so that it is as long as it must be.
  bool for_write() const { return for_write_; }
  // A descriptor of the same file for O_DIRECT writes, shared by those under way and closed with
  // the last of them; null where there is none to be had.
  std::shared_ptr<const UniqueFd> ForDirectWrites();
  // Another descriptor of the same file, whatever its name is by now; invalid where there is none
  // to be had. Thread-safe.
  UniqueFd Reopen(int flags) const;

 private:
  UniqueFd fd_;
  bool for_write_ = false;
  bool refuses_direct_ = false;
  std::weak_ptr<const UniqueFd> direct_;
};

// Frees the bytes; the file's length stays. Blocking.
Status PunchHole(int fd, uint64_t offset, uint64_t bytes);
// Or an empty directory. Absent is fine.
Status RemoveFile(const std::string& path);
// Whether the directory's file system can punch holes, found by trying.
Status CheckHoles(const std::string& dir);

}  // namespace dartfs::core
