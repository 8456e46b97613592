// Node: the composition root: one cache, and the mounts that share it. Built from the disk upwards,
// stopped in reverse: control socket, mounts, names, engine, transfers, store, disk.
//
// Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/options.h"
#include "app/served_mount.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"

namespace dartfs::app {

class Node {
 public:
  virtual ~Node() = default;  // Stop
  // Takes the cache directory. Blocks on the local disk. kBusy: another process has it. Every error
  // says what to do. Options have passed ResolveDefaults.
  static core::Result<std::unique_ptr<Node>> Open(const Options& options);

  // Mounts what the options name, if anything, and opens the control socket. No origin has been
  // asked on return. Once.
  virtual core::Status Begin(OnMounted on_mounted) = 0;
  // Readable once the last mount has ended, whoever unmounted it; never where the node is to stay.
  virtual int ended_fd() const = 0;
  // As resolved: absolute, without symbolic links.
  virtual std::vector<std::string> mountpoints() const = 0;
  // Takes anew what comes from files: the catalogues of mounts, the registries' logins; and of
  // `now`, the options as they are by now, which origins may be asked. What can't be taken is
  // logged and stays as it was. Reads the local disk on another thread, which then calls `done`;
  // not after Stop.
  virtual void Reload(const Options& now, std::function<void()> done) = 0;
  // One line for people: what it serves.
  virtual std::string Summary() const = 0;
  // Where work of all kinds is done: a node that works answers there soon.
  virtual core::Scheduler& scheduler() = 0;
  // Unmounts and ends all threads; what is present becomes durable. Twice is fine.
  virtual void Stop() = 0;
};

}  // namespace dartfs::app
