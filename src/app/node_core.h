// NodeCore: what all mounts of a node share: disk I/O, store, HTTP client, engine, and the thread
// that reads and writes names. Made first, stopped last, by the node; main thread only, but for
// engine() and names_worker().
#pragma once

#include <memory>
#include <string>

#include "app/options.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/engine/engine.h"

namespace dartfs::app {

// Of --origin-allow and --origin-deny.
core::Result<core::OriginPolicy> OriginPolicyOf(const Options& options);

class NodeCore {
 public:
  // Takes the cache directory. Blocks on the local disk; asks no origin. kBusy: another process has
  // the directory, its ID in the message. Every error says what to do. Options have passed
  // ResolveDefaults.
  static core::Result<std::unique_ptr<NodeCore>> Open(const Options& options);
  ~NodeCore();  // Stop

  core::Engine& engine() { return *engine_; }
  core::Scheduler& names_worker() { return *names_worker_; }
  const std::string& cache_dir() const { return cache_dir_; }
  // Tells this run of the node from others, in Via.
  const std::string& via_id() const { return via_id_; }

  // Cancels fetches and reads: mounts and names can go from then on. Twice is fine.
  void StopTransfers();
  // All the rest; what is present becomes durable. Mounts and names are gone. Twice is fine.
  void Stop();

 private:
  NodeCore() = default;
  core::Status Start(const Options& options);
  core::Status OpenStore(const Options& options);

  std::string cache_dir_;
  std::string via_id_;
  std::unique_ptr<core::DiskIo> disk_;
  std::unique_ptr<core::Scheduler> scheduler_;
  std::unique_ptr<core::Scheduler> names_worker_;
  std::unique_ptr<core::Store> store_;
  std::unique_ptr<core::HttpClient> http_;
  std::unique_ptr<core::Engine> engine_;
};

}  // namespace dartfs::app
