// Logging: one line an event, through spdlog, to stderr once the app called LogToStderr. Foreign
// text goes through EscapeForeign or RedactUrl first. Log or return an error, not both.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace dartfs::core {

// Level names as spdlog's: trace, debug, info, warn, error. False for another word.
bool SetLogLevel(const std::string& level);

// Sends the log to stderr, each line at once. Before other threads start.
void LogToStderr();

}  // namespace dartfs::core

#define LOG_DEBUG(...) ::spdlog::debug(__VA_ARGS__)
#define LOG_INFO(...) ::spdlog::info(__VA_ARGS__)
#define LOG_WARN(...) ::spdlog::warn(__VA_ARGS__)
#define LOG_ERROR(...) ::spdlog::error(__VA_ARGS__)
