#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "core/base/text.h"
#include "httpd/access_log.h"

namespace dartfs::httpd {
namespace {

constexpr size_t kLongestMethod = 32;
constexpr size_t kLongestClient = 128;

// Escaped text as one field.
std::string OneField(std::string_view escaped) {
  std::string field;
  for (const char c : escaped) {
    if (c == ' ') {
      field += "\\x20";
    } else {
      field += c;
    }
  }
  return field.empty() ? "-" : field;
}

std::string Field(std::string_view text, size_t max_bytes) {
  return OneField(core::EscapeForeign(text, max_bytes));
}

std::string TargetField(std::string_view target) { return OneField(core::RedactUrl(target)); }

std::string TimeField(int64_t unix_ms) {
  constexpr int64_t kMsPerSecond = 1000;
  const std::time_t time = unix_ms / kMsPerSecond;
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return "-";
  constexpr int kYearOffset = 1900;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + kYearOffset,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     unix_ms % kMsPerSecond);
}

std::string SourcesField(const AccessRecord& record) {
  constexpr std::array<const char*, kBytesFrom> kNames = {"node", "cache", "origin", "peer",
                                                          "relay"};
  std::string field;
  for (size_t from = 1; from < kNames.size(); ++from) {
    if (record.sent_by[from] == 0) continue;
    field.append(field.empty() ? "" : ",").append(kNames[from]).append("=");
    core::AppendNumber(record.sent_by[from], &field);
  }
  return field.empty() ? "-" : field;
}

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

std::string FormatAccessLine(const AccessRecord& record) {
  const double took_ms = std::chrono::duration<double, std::milli>(record.took).count();
  return fmt::format("{} {} {} {} {} {} {} {:.3f} {}{}\n", TimeField(record.unix_ms),
                     Field(record.client, kLongestClient), Field(record.method, kLongestMethod),
                     TargetField(record.target), record.status, record.sent, SourcesField(record),
                     std::max(0.0, took_ms), Field(record.note.trace_id, kLongestClient),
                     record.complete ? "" : " cut");
}

std::string TraceIdOf(std::string_view traceparent) {
  // version "-" trace-id "-" parent-id "-" flags; later versions may go on behind another "-".
  constexpr size_t kLength = 55;
  constexpr size_t kTraceId = 3;
  constexpr size_t kTraceIdLength = 32;
  constexpr size_t kParentId = 36;
  constexpr size_t kParentIdLength = 16;
  constexpr size_t kFlags = 53;
  if (traceparent.size() < kLength) return "";
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace = traceparent.substr(kTraceId, kTraceIdLength);
  const std::string_view parent = traceparent.substr(kParentId, kParentIdLength);
  const bool dashes = traceparent[kTraceId - 1] == '-' && traceparent[kParentId - 1] == '-' &&
                      traceparent[kFlags - 1] == '-';
  const bool digits = IsLowerHex(version) && IsLowerHex(trace) && IsLowerHex(parent) &&
                      IsLowerHex(traceparent.substr(kFlags, 2));
  if (!dashes || !digits || version == "ff" || IsZero(trace) || IsZero(parent)) return "";
  const bool longer = traceparent.size() > kLength;
  if (longer && (version == "00" || traceparent[kLength] != '-')) return "";
  return std::string(trace);
}

}  // namespace dartfs::httpd
