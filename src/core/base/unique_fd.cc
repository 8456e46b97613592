#include "core/base/unique_fd.h"

#include <unistd.h>

#include <cerrno>

#include "core/base/check.h"

namespace dartfs::core {

void UniqueFd::Reset(int fd) {
  DARTFS_CHECK(fd < 0 || fd != fd_);
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  // Dropping happens on error paths too, whose errno must survive it. EBADF means that somebody
  // else closed it, and could have closed a stranger's. Linux frees the number also on EINTR.
  const int saved = errno;
  DARTFS_CHECK(close(old) == 0 || errno != EBADF);
  errno = saved;
}

}  // namespace dartfs::core
