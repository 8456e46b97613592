// errno_map: the one place where an Error becomes an errno. Pure.
#pragma once

#include "core/base/result.h"

namespace dartfs::fs {

// Positive, never 0. What a program meets:
//   ENOENT      no such name at the origin (404, 410)
//   EACCES      the origin says 401 or 403, or policy refuses the request
//   ETIMEDOUT   the mount's timeout passed
//   ESTALE      the object has another version now, and the bytes of this one are not all cached
//   EFBIG       a range-blind object above the spool limit
//   EINTR       the caller is being killed
//   EISDIR, EINVAL, EOPNOTSUPP   as their names say
//   EBUSY       a bounded table is full
//   EIO         all else, 429 and 503 too: EAGAIN from a blocking read would be taken for an
//   invitation
//               to spin
int ErrnoOf(const core::Error& error);

// Answers that are no Error of the core.
int ErrnoNoAttribute();
int ErrnoNotSupported();
int ErrnoReadOnly();
int ErrnoNameTooLong();
int ErrnoRange();

// A mountpoint whose daemon has gone answers with one of these.
bool IsDeadMount(int sys_errno);

}  // namespace dartfs::fs
