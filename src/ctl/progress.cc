#include "ctl/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/json_fields.h"
#include "core/base/text.h"

namespace dartfs::ctl {
namespace {

using nlohmann::json;

constexpr core::Duration kWindow = std::chrono::seconds(5);

uint64_t Count(const json& job, const char* part, const char* name) {
  const json* const object = app::Field(job, part);
  const auto number = object == nullptr ? std::nullopt : app::NumberField(*object, name);
  return static_cast<uint64_t>(std::max<int64_t>(number.value_or(0), 0));
}

double Share(const json& job) {
  const uint64_t total = Count(job, "bytes", "total");
  if (total == 0) return 0;
  const double share =
      static_cast<double>(Count(job, "bytes", "done")) / static_cast<double>(total);
  return std::min(share, 1.0);
}

std::string TimeLeft(double seconds) {
  const auto whole = static_cast<int64_t>(seconds) + 1;
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  return fmt::format("{} h", whole / 3600);
}

}  // namespace

void Rate::Add(core::TimePoint now, uint64_t bytes_done) {
  samples_.push_back({now, bytes_done});
  while (samples_.size() > 2 && now - samples_[1].at >= kWindow) samples_.pop_front();
}

double Rate::PerSecond() const {
  if (samples_.size() < 2) return 0;
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double seconds = std::chrono::duration<double>(last.at - first.at).count();
  if (seconds <= 0 || last.bytes <= first.bytes) return 0;
  return static_cast<double>(last.bytes - first.bytes) / seconds;
}

std::string ProgressText(const json& job, double bytes_per_second) {
  const uint64_t done = Count(job, "bytes", "done");
  const uint64_t total = Count(job, "bytes", "total");
  const bool walking = app::BoolField(job, "walking").value_or(false);
  std::string text = fmt::format("{} of {}{}", core::FormatSize(done), core::FormatSize(total),
                                 walking ? " so far" : "");
  if (!walking) text += fmt::format(" ({:.0f} %)", 100 * Share(job));
  if (bytes_per_second > 0) {
    text += fmt::format(", {}/s", core::FormatSize(static_cast<uint64_t>(bytes_per_second)));
    if (!walking && total > done) {
      text += ", " + TimeLeft(static_cast<double>(total - done) / bytes_per_second) + " left";
    }
  }
  text += fmt::format(", {} of {} objects", Count(job, "objects", "done"),
                      Count(job, "objects", "found"));
  if (const uint64_t failed = Count(job, "objects", "failed"); failed > 0) {
    text += fmt::format(", {} failed", failed);
  }
  return text;
}

std::string ProgressBar(const json& job, double bytes_per_second) {
  constexpr size_t kWidth = 24;
  const auto filled = static_cast<size_t>(Share(job) * kWidth);
  return "[" + std::string(filled, '#') + std::string(kWidth - filled, '-') + "] " +
         ProgressText(job, bytes_per_second);
}

}  // namespace dartfs::ctl
