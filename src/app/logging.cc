#include "app/logging.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/syslog_sink.h>
#include <syslog.h>

#include <exception>
#include <memory>

#include "app/preflight.h"
#include "core/base/text.h"

// <syslog.h> has priorities of the same names as the log's macros.
#undef LOG_DEBUG
#undef LOG_INFO
#include "core/base/log.h"

namespace dartfs::app {
namespace {

using core::Result;
using core::Status;
using spdlog::sinks::dist_sink_mt;

constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";

// The sink behind the logger; what it passes on to is exchanged under its own lock.
std::shared_ptr<dist_sink_mt>& Switch() {
  static std::shared_ptr<dist_sink_mt> sink = std::make_shared<dist_sink_mt>();
  return sink;
}

// spdlog makes directories that are not there: a slip of the finger is to be told instead.
Result<spdlog::sink_ptr> OpenFile(const std::string& path) {
  TRY(CheckParent("log file", path));
  try {
    return spdlog::sink_ptr(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const std::exception& failure) {
    return core::MakeError(core::Code::kIo, "log file " + core::EscapeForeign(path) + ": " +
                                                core::EscapeForeign(failure.what()));
  }
}

void Install(spdlog::sink_ptr destination, const char* pattern) {
  Switch()->set_sinks({std::move(destination)});
  auto logger = std::make_shared<spdlog::logger>("dartfs", Switch());
  logger->set_pattern(pattern);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace

Status SetUpLog(const Options& options) {
  if (!options.log_file.empty()) {
    TRY_ASSIGN(spdlog::sink_ptr file, OpenFile(options.log_file));
    Install(std::move(file), kPattern);
  } else if (options.foreground) {
    core::LogToStderr();
  } else {
    auto syslog =
        std::make_shared<spdlog::sinks::syslog_sink_mt>("dartfs", LOG_PID, LOG_DAEMON, true);
    Install(std::move(syslog), "%v");
  }
  core::SetLogLevel(options.log_level);
  return {};
}

Status ReopenLog(const Options& options) {
  if (options.log_file.empty()) return {};
  TRY_ASSIGN(spdlog::sink_ptr file, OpenFile(options.log_file));
  file->set_pattern(kPattern);
  Switch()->set_sinks({std::move(file)});
  return {};
}

}  // namespace dartfs::app
