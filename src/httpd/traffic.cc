#include "httpd/traffic.h"

namespace dartfs::httpd {

void TrafficCounters::Count(const AccessRecord& record) {
  constexpr int kHundred = 100;
  Counters& plane = planes_[static_cast<size_t>(record.note.plane)];
  const int digit = record.status / kHundred;
  const bool known = digit > 0 && static_cast<size_t>(digit) < kStatusClasses;
  plane.answers[known ? static_cast<size_t>(digit) : 0].fetch_add(1, std::memory_order_relaxed);
  plane.sent.fetch_add(record.sent, std::memory_order_relaxed);
}

Traffic TrafficCounters::Read() const {
  Traffic traffic;
  for (size_t i = 0; i < kPlanes; ++i) {
    for (size_t digit = 0; digit < kStatusClasses; ++digit) {
      traffic[i].answers[digit] = planes_[i].answers[digit].load(std::memory_order_relaxed);
    }
    traffic[i].sent = planes_[i].sent.load(std::memory_order_relaxed);
  }
  return traffic;
}

}  // namespace dartfs::httpd
