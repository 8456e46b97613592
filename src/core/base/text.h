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

// A URL for people: no userinfo, no query, no fragment, then EscapeForeign. Works on any bytes.
std::string RedactUrl(std::string_view url);

std::string ToLowerAscii(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view TrimAscii(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);

std::string HexEncode(std::span<const std::byte> bytes);
bool IsHex(std::string_view text);

// Whole text is a decimal number without sign, else nullopt (also on overflow).
std::optional<uint64_t> ParseUint(std::string_view text);

// "4096", "64KiB", "1GB" (powers of 1000), "1GiB" (powers of 1024), "10G" (as GiB); else nullopt.
std::optional<uint64_t> ParseSize(std::string_view text);
// 1610612736 -> "1.5 GiB"
std::string FormatSize(uint64_t bytes);
// "500ms", "2s", "5m", "1h", bare number = seconds.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

// HTTP dates (RFC 9110 section 5.6.7; all three forms), seconds since the epoch.
std::optional<int64_t> ParseHttpDate(std::string_view text);
std::string FormatHttpDate(int64_t unix_seconds);

}  // namespace dartfs::core
