#include "app/admin_plane.h"

#include <utility>

#include "core/engine/engine.h"

namespace dartfs::app {

core::Result<std::unique_ptr<AdminPlane>> AdminPlane::Create(AdminPlaneOptions options,
                                                             core::Engine& engine) {
  std::unique_ptr<httpd::AccessLog> log;
  if (!options.access_log.empty()) {
    httpd::AccessLogOptions log_options;
    log_options.path = options.access_log;
    TRY_ASSIGN(log, httpd::AccessLog::Open(std::move(log_options)));
  }
  return std::unique_ptr<AdminPlane>(new AdminPlane(std::move(options), engine, std::move(log)));
}

AdminPlane::AdminPlane(AdminPlaneOptions options, core::Engine& engine,
                       std::unique_ptr<httpd::AccessLog> log)
    : options_(std::move(options)),
      engine_(engine),
      log_(std::move(log)),
      worker_(core::MakeThreadScheduler("admin", 1, core::RealClock())),
      handler_(std::make_unique<httpd::AdminHandler>(
          httpd::AdminSources{.not_ready =
                                  [this] {
                                    return draining_.load(std::memory_order_relaxed)
                                               ? std::string("stopping")
                                               : std::string();
                                  },
                              .metrics = [this] { return AdminMetrics(Facts(), engine_); },
                              .stats = [this] { return AdminStats(Facts(), engine_); },
                              .members = nullptr,
                              .ring = nullptr},
          *worker_)) {}

AdminPlane::~AdminPlane() { Stop(); }

void AdminPlane::Stop() { worker_->Stop(); }

AdminFacts AdminPlane::Facts() const {
  AdminFacts facts = options_.facts ? options_.facts() : AdminFacts();
  facts.traffic = traffic_.Read();
  if (log_ != nullptr) facts.dropped_access_lines = log_->dropped();
  return facts;
}

void AdminPlane::OnAnswered(const httpd::AccessRecord& record) {
  traffic_.Count(record);
  if (log_ != nullptr) log_->Add(record);
}

void AdminPlane::ReopenLog() {
  if (log_ != nullptr) log_->Reopen();
}

}  // namespace dartfs::app
