// The text of HTTP: request heads, dates, ranges, percent-encoding. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dartfs::origin {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  std::string target;  // as on the wire; of the absolute form only path and query are kept
  std::string path;    // target up to the first '?', never empty, still percent-encoded
  std::string query;   // after the first '?'
  int minor_version = 1;
  Headers headers;  // in order of arrival, names as written
  std::string body;

  // The first header of that name in any case; nullptr when there is none.
  const std::string* Find(std::string_view name) const;
  bool KeepAlive() const;
};

// Parses a head that ends in an empty line. nullopt: not an HTTP/1.x request (answer 400).
std::optional<Request> ParseRequestHead(std::string_view head);

// The value of one query parameter, percent-decoded, '+' left alone. nullopt: not there.
std::optional<std::string> QueryParameter(std::string_view query, std::string_view name);

// %XX becomes the byte; a '%' without two hex digits stays.
std::string PercentDecode(std::string_view text);
// Everything but letters, digits and the bytes in `keep` becomes %XX (upper-case hex).
std::string PercentEncode(std::string_view text, std::string_view keep = "-._~");

std::string EscapeHtml(std::string_view text);  // & < > " '

// IMF-fixdate, RFC 9110 section 5.6.7. Other date forms are not parsed.
std::string FormatHttpDate(std::time_t t);
std::optional<std::time_t> ParseHttpDate(std::string_view text);

// '*' is any run of bytes, '/' included; every other byte stands for itself.
bool GlobMatch(std::string_view pattern, std::string_view text);

bool EqualsNoCase(std::string_view a, std::string_view b);
std::string_view Trim(std::string_view text);
// A decimal number without sign, whole text. nullopt: not that, or above uint64.
std::optional<std::uint64_t> ParseNumber(std::string_view text);
// A number, or one followed by KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB (of 1000).
std::optional<std::uint64_t> ParseSize(std::string_view text);

// A single byte range as asked (RFC 9110 section 14.1.2).
struct RangeSpec {
  std::optional<std::uint64_t> first;  // none: a suffix of `last` bytes
  std::optional<std::uint64_t> last;   // none: to the end
};
// nullopt: another unit, several ranges or bad syntax; the header is to be ignored then.
std::optional<RangeSpec> ParseRange(std::string_view header);

// Half-open.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
};
// nullopt: not satisfiable for an object of `size` bytes.
std::optional<ByteRange> Resolve(const RangeSpec& spec, std::uint64_t size);

const char* ReasonPhrase(int status);

}  // namespace dartfs::origin
