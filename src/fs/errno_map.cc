#include "fs/errno_map.h"

#include <cerrno>

namespace dartfs::fs {

int ErrnoOf(const core::Error& error) {
  using core::Code;
  switch (error.code) {
    case Code::kNotFound:
    case Code::kGone:
      return ENOENT;
    case Code::kUnauthorized:
    case Code::kForbidden:
    case Code::kRefused:
      return EACCES;
    case Code::kDeadlineExceeded:
      return ETIMEDOUT;
    case Code::kStale:
      return ESTALE;
    case Code::kTooLarge:
      return EFBIG;
    case Code::kCancelled:
      return EINTR;
    case Code::kBusy:
      return EBUSY;
    case Code::kUnsupported:
      return EOPNOTSUPP;
    case Code::kIsDirectory:
      return EISDIR;
    case Code::kInvalidArgument:
      return EINVAL;
    case Code::kTooManyRequests:
    case Code::kUnavailable:
    case Code::kRangeBlind:
    case Code::kRangeNotSatisfiable:
    case Code::kBadResponse:
    case Code::kCorrupt:
    case Code::kIo:
    case Code::kNoSpace:
    case Code::kRedirected:
    case Code::kInternal:
      return EIO;
  }
  return EIO;
}

int ErrnoNoAttribute() { return ENODATA; }
int ErrnoNotSupported() { return EOPNOTSUPP; }
int ErrnoReadOnly() { return EROFS; }
int ErrnoNameTooLong() { return ENAMETOOLONG; }
int ErrnoRange() { return ERANGE; }

bool IsDeadMount(int sys_errno) { return sys_errno == ENOTCONN || sys_errno == ECONNABORTED; }

}  // namespace dartfs::fs
