// Foreign text on its way to people, and other small text helpers. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dartfs::core {

// The one escaper for foreign text in logs, errors, labels and pages: printable ASCII stays, the
// backslash is doubled, all else becomes \xHH; cut to `max_bytes` of input with "..." behind.
std::string EscapeForeign(std::string_view text, size_t max_bytes = 512);

// A URL for people: no userinfo, no query, no fragment, then EscapeForeign. Works on any bytes;
// also for a URL in another one's path. What can't be told from a password is left out ("...").
std::string RedactUrl(std::string_view url);

std::string ToLowerAscii(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view TrimAscii(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);

std::string HexEncode(std::span<const std::byte> bytes);
bool IsHex(std::string_view text);

void AppendNumber(uint64_t number, std::string* text);  // decimal
// Whole text is a decimal number without sign, else nullopt (also on overflow).
std::optional<uint64_t> ParseUint(std::string_view text);

// "4096", "64KiB", "1GB" (powers of 1000), "1GiB" (powers of 1024), "10G" (as GiB), letters in
// either case; else nullopt (also on overflow).
std::optional<uint64_t> ParseSize(std::string_view text);
// 1610612736 -> "1.5 GiB"
std::string FormatSize(uint64_t bytes);
// "500ms", "2s", "5m", "1h", bare number = seconds; up to 100 years, so that a deadline made of it
// can't overflow.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

// HTTP dates (RFC 9110 section 5.6.7; all three forms), seconds since the epoch. A two-digit year
// is one of 1970 to 2069. The day of the week must be one, but need not fit the date.
std::optional<int64_t> ParseHttpDate(std::string_view text);
// Years 0 to 9999; what lies outside is moved to the nearest end.
std::string FormatHttpDate(int64_t unix_seconds);

}  // namespace dartfs::core
