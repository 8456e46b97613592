#include "core/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace dartfs::core {

bool SetLogLevel(const std::string& level) {
  constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
  const auto* const found = std::find(kLevels.begin(), kLevels.end(), level);
  if (found == kLevels.end()) return false;
  // The words stand in the order of spdlog's levels.
  spdlog::set_level(static_cast<spdlog::level::level_enum>(found - kLevels.begin()));
  return true;
}

void LogToStderr() {
  auto logger =
      std::make_shared<spdlog::logger>("dartfs", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::get_level());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace dartfs::core
