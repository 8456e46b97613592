// Mount: a namespace shown at a mountpoint, from mount to unmount. What the app starts and stops.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/grid.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "core/engine/engine.h"
#include "fs/auto_fill.h"
#include "fs/namespace.h"

namespace dartfs::fs {

struct MountOptions {
  std::string mountpoint;
  std::string source;  // as the user wrote it; shown redacted
  bool allow_other = false;
  bool noexec = false;  // no programs run from it
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t umask = 0;
  core::Duration timeout = std::chrono::seconds(60);  // as in FileSystemOptions
  core::Duration ttl = std::chrono::seconds(60);      // how long the kernel keeps names
  core::Grid grid;                                    // the engine's
  std::string authorization;  // for reads through this mount, as in core::Requester
  // Complete files are read by the kernel itself, where it can (FUSE passthrough); `probe_file`
  // lies where their cache files do.
  bool passthrough = true;
  std::string probe_file;
  FillMode fill = FillMode::kAuto;
  unsigned read_ahead_kib = 4096;  // of the kernel; 0 leaves it alone
  unsigned threads = 0;            // of the FUSE loop; 0: by the number of processors
  unsigned max_background = 64;    // reads ahead that the kernel may have under way
  // The /dev/fuse of a mount that another process has made, and its st_dev; `mountpoint` is
  // resolved then, and may still be without it. Without one the mount is made here.
  core::UniqueFd device = {};
  dev_t device_number = 0;
  // Not with `device`. Called once the kernel shows the mount, which may not answer yet: resolved
  // mountpoint, device.
  std::function<void(const std::string& mountpoint, dev_t device)> on_mounted = {};
};

struct MountStats {
  std::string mountpoint;  // raw bytes
  std::string source;      // redacted
  size_t nodes = 0, open_files = 0, open_dirs = 0;
  size_t waiting = 0;            // requests without an answer yet
  std::string passthrough;       // "on", or why not
  size_t passthrough_nodes = 0;  // files that the kernel reads by itself at present
  uint64_t passthrough_opens = 0;
  uint64_t refused_nodes = 0;
  std::vector<std::pair<std::string, uint64_t>> requests;  // by kind
};

class Mount {
 public:
  // Mounted, and answering, on return. Contacts nobody. Blocking. A dead mount on the mountpoint is
  // replaced. Errors, each with what to do: kNotFound or kInvalidArgument (the mountpoint), kBusy
  // (a live dartfs mount is there), kIo (the system's word). The engine outlives the mount.
  static core::Result<std::unique_ptr<Mount>> Create(MountOptions options,
                                                     std::unique_ptr<Namespace> names,
                                                     core::Engine& engine);
  // Stop. Requests to the namespace that have not ended yet are left to end by their deadlines,
  // before the engine's scheduler does.
  ~Mount();

  // Blocks until the mount has ended: Stop, or `umount` from outside. Any thread.
  void Wait();
  bool WaitFor(core::Duration timeout);  // false: it still runs

  // Unmounts, lazily when in use; answers everything that waits; joins. Twice is fine.
  void Stop();

  const std::string& mountpoint() const;
  MountStats Stats() const;

 private:
  struct Impl;
  explicit Mount(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dartfs::fs
