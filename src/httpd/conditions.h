// Conditional requests (RFC 9110 section 13) against one representation. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dartfs::httpd {

// What is served: validators as the origin has given them.
struct Validators {
  std::string_view etag;       // with its quotes, and "W/" where it is weak; empty: none
  int64_t last_modified = -1;  // seconds since the epoch; -1: not known
};

// The request's fields as they came; nullopt: absent. Several fields of one name are joined with
// ", " by whoever reads them.
struct Conditions {
  std::optional<std::string_view> if_match = {};
  std::optional<std::string_view> if_none_match = {};
  std::optional<std::string_view> if_modified_since = {};
  std::optional<std::string_view> if_unmodified_since = {};
  std::optional<std::string_view> if_range = {};
};

enum class Verdict : uint8_t {
  kServe,
  kNotModified,         // 304
  kPreconditionFailed,  // 412
};

// Of a GET or HEAD, in the order of section 13.2.2, If-Range left out. A date that is none, or a
// list of tags that is none, counts as absent, except that If-Match then fails.
Verdict Judge(const Conditions& conditions, const Validators& validators);

// Whether Range holds: there is no If-Range, or it names this very representation. By a strong
// entity tag alone: a date can't tell two versions of one second apart.
bool RangeHolds(const Conditions& conditions, const Validators& validators);

}  // namespace dartfs::httpd
