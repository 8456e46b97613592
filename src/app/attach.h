// How a further mount joins the node that has the cache directory already: this process makes the
// mount, hands its /dev/fuse over the node's control socket, and is done.
//
// As root the mount stands nowhere until the node answers for it, so a process that ends in the
// middle leaves nothing behind. Other users mount through fusermount3; whoever started this process
// takes such a mount away should it end in between (StartReport).
//
// Single-threaded. Blocks: on the local disk, and on the node up to a deadline.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "app/options.h"
#include "app/served_mount.h"
#include "app/signals.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

struct Joined {
  std::string mountpoint;  // resolved
  dev_t device = 0;        // st_dev of the mount
  core::UniqueFd node;     // a pidfd; readable once the node has ended; invalid where there is none
};

// nullopt: no live node has the directory, so this process is to become it. A node that starts is
// waited for, one that ends as well. Errors: the node's refusal; kBusy (the mountpoint),
// kDeadlineExceeded (the node hangs), kForbidden (another user's).
core::Result<std::optional<Joined>> JoinNode(const Invocation& invocation,
                                             const OnMounted& on_mounted);

// Blocks until the mount has ended. SIGTERM and SIGINT unmount it, and no other. kUnavailable: the
// node ended without unmounting.
core::Status StayJoined(const Joined& joined, Signals& signals);

// Whether a live process of this user has the cache directory. One that looks at the same moment
// may see the look itself as such a process, for a moment.
bool InUse(const std::string& cache_dir);

// Identifies the calling process's mount namespace; 0: not known.
uint64_t MountNamespace();

}  // namespace dartfs::app
