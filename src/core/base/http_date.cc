#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Takes a date apart from the left. After the first thing that is not there, ok() is false and the
// rest means nothing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

  bool TryLiteral(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }
  void Literal(std::string_view literal) { ok_ = TryLiteral(literal) && ok_; }

  // Exactly `digits` digits.
  unsigned Number(size_t digits) {
    const auto value = ParseUint(rest_.substr(0, digits));
    ok_ = ok_ && rest_.size() >= digits && value;
    if (!ok_) return 0;
    rest_.remove_prefix(digits);
    return static_cast<unsigned>(*value);
  }

  // 1 to 12.
  unsigned Month() {
    const auto* const found = std::find(kMonths.begin(), kMonths.end(), rest_.substr(0, 3));
    ok_ = ok_ && found != kMonths.end();
    if (!ok_) return 0;
    rest_.remove_prefix(3);
    return static_cast<unsigned>(found - kMonths.begin()) + 1;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct Fields {
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  std::chrono::seconds time{0};
};

std::chrono::seconds ScanTime(Scanner& in) {
  const unsigned hour = in.Number(2);
  in.Literal(":");
  const unsigned minute = in.Number(2);
  in.Literal(":");
  const unsigned second = in.Number(2);
  // 60: a leap second, shown as the next minute's first.
  if (hour > 23 || minute > 59 || second > 60) in.Literal("out of range");
  return std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

// After "Sun, ": 06 Nov 1994 08:49:37 GMT
Fields ScanImfFixdate(Scanner& in) {
  Fields date;
  date.day = in.Number(2);
  in.Literal(" ");
  date.month = in.Month();
  in.Literal(" ");
  date.year = in.Number(4);
  in.Literal(" ");
  date.time = ScanTime(in);
  in.Literal(" GMT");
  return date;
}

// After "Sunday, ": 06-Nov-94 08:49:37 GMT
Fields ScanRfc850(Scanner& in) {
  Fields date;
  date.day = in.Number(2);
  in.Literal("-");
  date.month = in.Month();
  in.Literal("-");
  const unsigned year = in.Number(2);
  date.year = year + (year < 70 ? 2000 : 1900);
  in.Literal(" ");
  date.time = ScanTime(in);
  in.Literal(" GMT");
  return date;
}

// After "Sun ": Nov  6 08:49:37 1994
Fields ScanAsctime(Scanner& in) {
  Fields date;
  date.month = in.Month();
  in.Literal(" ");
  date.day = in.TryLiteral(" ") ? in.Number(1) : in.Number(2);
  in.Literal(" ");
  date.time = ScanTime(in);
  in.Literal(" ");
  date.year = in.Number(4);
  return date;
}

Fields ScanDate(Scanner& in) {
  for (const std::string_view day : kDays) {
    Scanner after_day = in;
    if (after_day.TryLiteral(day)) {
      in = after_day;
      in.Literal(", ");
      return ScanRfc850(in);
    }
    if (after_day.TryLiteral(day.substr(0, 3))) {
      in = after_day;
      if (in.TryLiteral(", ")) return ScanImfFixdate(in);
      in.Literal(" ");
      return ScanAsctime(in);
    }
  }
  in.Literal("a day");
  return {};
}

}  // namespace

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  Scanner in(text);
  const Fields fields = ScanDate(in);
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(fields.year)),
                                         std::chrono::month(fields.month),
                                         std::chrono::day(fields.day));
  if (!in.AtEnd() || !date.ok()) return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + fields.time;
  return time.time_since_epoch().count();
}

std::string FormatHttpDate(int64_t unix_seconds) {
  constexpr int64_t kYear0 = -62167219200;
  constexpr int64_t kYear9999End = 253402300799;
  const std::chrono::sys_seconds time(
      std::chrono::seconds(std::clamp(unix_seconds, kYear0, kYear9999End)));
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss clock(time - midnight);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[std::chrono::weekday(midnight).c_encoding()].substr(0, 3),
                     static_cast<unsigned>(date.day()),
                     kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

}  // namespace dartfs::core
