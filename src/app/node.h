// Node: the composition root. Builds what serves a mount, from the disk upwards, and stops it in
// reverse: control socket, mount, names, engine, transfers, store, disk.
//
// Main thread only, but for what the control socket's thread reads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "app/options.h"
#include "core/base/result.h"

namespace dartfs::app {

// The resolved mountpoint and the device, once the kernel shows the mount.
using OnMounted = std::function<void(const std::string& mountpoint, dev_t device)>;

class Node {
 public:
  virtual ~Node() = default;  // Stop
  // Mounted and answering on return; no origin has been asked. Blocks on the local disk. Every
  // error says what to do. Options have passed ResolveDefaults.
  static core::Result<std::unique_ptr<Node>> Start(const Options& options, OnMounted on_mounted);

  // Readable once the mount has ended, whoever unmounted it.
  virtual int ended_fd() const = 0;
  // As resolved: absolute, without symbolic links.
  virtual const std::string& mountpoint() const = 0;
  // Unmounts and ends all threads; what is present becomes durable. Twice is fine.
  virtual void Stop() = 0;
};

}  // namespace dartfs::app
