// How a job gets on, in one line. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/time.h"

namespace dartfs::ctl {

// Bytes a second over the last few seconds.
class Rate {
 public:
  void Add(core::TimePoint now, uint64_t bytes_done);
  double PerSecond() const;

 private:
  struct Sample {
    core::TimePoint at;
    uint64_t bytes = 0;
  };
  std::deque<Sample> samples_;
};

// "1.2 GiB of 2.6 GiB (46 %), 85 MiB/s, 17 s left, 3 of 7 objects". Of a job as `job` answers.
std::string ProgressText(const nlohmann::json& job, double bytes_per_second);
// "[#####-------] " and the text.
std::string ProgressBar(const nlohmann::json& job, double bytes_per_second);

}  // namespace dartfs::ctl
