// AdminPlane: what answers for the operator, counts what is served, and writes the access log.
// Made before the server, whose threads call it; gone after it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/admin_reports.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "httpd/access_log.h"
#include "httpd/admin_handler.h"
#include "httpd/traffic.h"

namespace dartfs::app {

struct AdminPlaneOptions {
  std::string access_log;  // path; empty: none
  // What only the node knows: mounts, the server's counts, what was relayed. On the plane's own
  // thread; may wait for locks. The plane fills in the rest.
  std::function<AdminFacts()> facts;
};

class AdminPlane {
 public:
  // kIo: the access log can't be opened. The engine outlives the plane.
  static core::Result<std::unique_ptr<AdminPlane>> Create(AdminPlaneOptions options,
                                                          core::Engine& engine);
  ~AdminPlane();  // Stop

  httpd::Handler& handler() { return *handler_; }
  // For ServerOptions::on_answered. Does not block.
  void OnAnswered(const httpd::AccessRecord& record);
  // After a rotation. Any thread.
  void ReopenLog();
  // /readyz says 503 from now on, with the reason. Any thread.
  void SetDraining() { draining_.store(true, std::memory_order_relaxed); }
  // Nothing of the node is looked at any more; who waits is answered 500. Twice is fine.
  void Stop();

 private:
  AdminPlane(AdminPlaneOptions options, core::Engine& engine,
             std::unique_ptr<httpd::AccessLog> log);
  AdminFacts Facts() const;

  const AdminPlaneOptions options_;
  core::Engine& engine_;
  const std::unique_ptr<httpd::AccessLog> log_;  // null: none
  httpd::TrafficCounters traffic_;
  std::atomic<bool> draining_{false};
  const std::unique_ptr<core::Scheduler> worker_;  // "admin"
  const std::unique_ptr<httpd::AdminHandler> handler_;
};

}  // namespace dartfs::app
