// ServedMount: one mount of the node, from its names to its end. Thread-safe. Shared: who looks at
// it (status, explain) may still hold it when it has ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/node_core.h"
#include "app/options.h"
#include "app/reports.h"
#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "fs/mount.h"
#include "fs/namespace.h"

namespace dartfs::app {

// A mount that another process has made for this node: its /dev/fuse, and its st_dev.
struct MountDevice {
  core::UniqueFd fd;
  dev_t number = 0;
};

// The resolved mountpoint and the device, once the kernel shows the mount.
using OnMounted = std::function<void(const std::string& mountpoint, dev_t device)>;

class ServedMount {
 public:
  struct Start {
    std::optional<MountDevice> device = {};  // without one it is mounted here
    OnMounted on_mounted = {};               // then; may be empty
    std::function<void()> on_ended = {};     // from a thread of the mount: not to Stop it there
  };
  // Answering on return; no origin has been asked. Source, mountpoint and what else is a mount's
  // own are taken from the options. Blocking. The core outlives it.
  static core::Result<std::shared_ptr<ServedMount>> Create(const Options& options, Start start,
                                                           NodeCore& core);
  ~ServedMount();  // Stop

  // As resolved: absolute, without symbolic links.
  const std::string& mountpoint() const { return mount_->mountpoint(); }
  // Whether it has ended, whoever unmounted it.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  MountFacts Facts() const;
  fs::Namespace& names() const { return *names_; }
  // Of its reads, as in core::Requester.
  const std::string& authorization() const { return authorization_; }

  // Unmounts; answers everything that waits; joins. Twice is fine, also at once.
  void Stop();

 private:
  ServedMount(const Options& options, NodeCore& core);
  core::Status Mount(Start start);

  const Options options_;
  const core::TimePoint since_ = core::RealClock().Now();
  NodeCore& core_;
  std::string authorization_;
  fs::Namespace* names_ = nullptr;  // owned by the mount
  std::unique_ptr<fs::Mount> mount_;
  std::atomic<bool> ended_{false};
  std::once_flag stopped_;
  std::thread watch_;  // waits for the end
};

}  // namespace dartfs::app
