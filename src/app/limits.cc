#include "app/limits.h"

#include <malloc.h>
#include <sys/resource.h>

#include <cerrno>

#include "core/base/log.h"

namespace dartfs::app {
namespace {

constexpr rlim_t kFewOpenFiles = 4096;
// glibc raises its own threshold to the size of what is freed. libcurl's receive buffers, one a
// transfer, stay below and are used again; what is larger goes back to the system.
constexpr int kOwnMappingBytes = 768 << 10;
constexpr int kTrimBytes = 8 << 20;

}  // namespace

void KeepHeapSmall() {
  mallopt(M_MMAP_THRESHOLD, kOwnMappingBytes);
  mallopt(M_TRIM_THRESHOLD, kTrimBytes);
}

void RaiseOpenFilesLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARN("the limit of open files is not known: errno {}", errno);
    return;
  }
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    LOG_WARN("the limit of open files stays at {}: errno {}", before, errno);
    return;
  }
  LOG_DEBUG("open files: at most {}, before {}", limit.rlim_max, before);
  if (limit.rlim_max < kFewOpenFiles) {
    LOG_WARN(
        "at most {} files may be open, which is little for a busy mount: raise the hard limit "
        "(ulimit -Hn; in a systemd unit LimitNOFILE=)",
        limit.rlim_max);
  }
}

}  // namespace dartfs::app
