#include "origin/http_text.h"

#include <algorithm>
#include <array>
#include <limits>

namespace dartfs::origin {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = Lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool IsUnreservedWord(char c) {
  return (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z');
}

bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (EqualsNoCase(Trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Takes the next line off `head`, without its CRLF or LF.
std::string_view TakeLine(std::string_view& head) {
  const std::size_t end = std::min(head.find('\n'), head.size());
  std::string_view line = head.substr(0, end);
  head.remove_prefix(std::min(end + 1, head.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool ParseRequestLine(std::string_view line, Request& request) {
  const std::size_t a = line.find(' ');
  const std::size_t b = line.rfind(' ');
  if (a == std::string_view::npos || b <= a + 1) return false;
  const std::string_view version = line.substr(b + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  request.minor_version = version.back() - '0';
  request.method = line.substr(0, a);
  std::string_view target = line.substr(a + 1, b - a - 1);
  if (const std::size_t scheme = target.find("://");
      target.front() != '/' && scheme != std::string_view::npos) {
    const std::size_t slash = target.find_first_of("/?", scheme + 3);
    target = slash == std::string_view::npos ? std::string_view() : target.substr(slash);
  }
  request.target = target;
  if (request.target.empty() || request.target[0] == '?') request.target.insert(0, "/");
  const std::size_t question = request.target.find('?');
  request.path = request.target.substr(0, question);
  if (question != std::string::npos) request.query = request.target.substr(question + 1);
  return request.path[0] == '/';
}

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

std::string Digits(int value, int width) {
  std::string text = std::to_string(value);
  while (static_cast<int>(text.size()) < width) text.insert(0, "0");
  return text;
}

}  // namespace

const std::string* Request::Find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualsNoCase(key, name)) return &value;
  }
  return nullptr;
}

bool Request::KeepAlive() const {
  const std::string* connection = Find("Connection");
  if (minor_version == 0) return connection != nullptr && HasToken(*connection, "keep-alive");
  return connection == nullptr || !HasToken(*connection, "close");
}

std::optional<Request> ParseRequestHead(std::string_view head) {
  Request request;
  if (!ParseRequestLine(TakeLine(head), request)) return std::nullopt;
  for (std::string_view line = TakeLine(head); !line.empty(); line = TakeLine(head)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    request.headers.emplace_back(line.substr(0, colon), Trim(line.substr(colon + 1)));
  }
  return request;
}

std::optional<std::string> QueryParameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (PercentDecode(pair.substr(0, equals)) != name) continue;
    return PercentDecode(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::nullopt;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string PercentEncode(std::string_view text, std::string_view keep) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (IsUnreservedWord(c) || keep.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string FormatHttpDate(std::time_t t) {
  std::tm tm{};
  gmtime_r(&t, &tm);
  std::string out(kDays[static_cast<std::size_t>(tm.tm_wday)]);
  out += ", " + Digits(tm.tm_mday, 2) + " ";
  out += kMonths[static_cast<std::size_t>(tm.tm_mon)];
  out += " " + Digits(tm.tm_year + 1900, 4) + " " + Digits(tm.tm_hour, 2) + ":" +
         Digits(tm.tm_min, 2) + ":" + Digits(tm.tm_sec, 2) + " GMT";
  return out;
}

std::optional<std::time_t> ParseHttpDate(std::string_view text) {
  // "Sun, 06 Nov 1994 08:49:37 GMT"
  if (text.size() != 29 || text.substr(26) != "GMT" || text.substr(3, 2) != ", ") {
    return std::nullopt;
  }
  const auto* month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  const auto day = ParseNumber(text.substr(5, 2));
  const auto year = ParseNumber(text.substr(12, 4));
  const auto hour = ParseNumber(text.substr(17, 2));
  const auto minute = ParseNumber(text.substr(20, 2));
  const auto second = ParseNumber(text.substr(23, 2));
  if (month == kMonths.end() || !day || !year || !hour || !minute || !second || *year < 1970) {
    return std::nullopt;
  }
  std::tm tm{};
  tm.tm_year = static_cast<int>(*year) - 1900;
  tm.tm_mon = static_cast<int>(month - kMonths.begin());
  tm.tm_mday = static_cast<int>(*day);
  tm.tm_hour = static_cast<int>(*hour);
  tm.tm_min = static_cast<int>(*minute);
  tm.tm_sec = static_cast<int>(*second);
  return timegm(&tm);
}

bool GlobMatch(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool EqualsNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view Trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::optional<std::uint64_t> ParseSize(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t factor;
  };
  static constexpr std::uint64_t k = 1024;
  static constexpr std::array<Unit, 8> kUnits = {{{"KiB", k},
                                                  {"MiB", k * k},
                                                  {"GiB", k * k * k},
                                                  {"TiB", k * k * k * k},
                                                  {"kB", 1000},
                                                  {"MB", 1000 * 1000},
                                                  {"GB", 1000 * 1000 * 1000},
                                                  {"", 1}}};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseNumber(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.name != text.substr(digits)) continue;
    if (*number > std::numeric_limits<std::uint64_t>::max() / unit.factor) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

std::optional<RangeSpec> ParseRange(std::string_view header) {
  constexpr std::string_view kUnit = "bytes=";
  if (header.size() <= kUnit.size() || !EqualsNoCase(header.substr(0, kUnit.size()), kUnit)) {
    return std::nullopt;
  }
  const std::string_view range = Trim(header.substr(kUnit.size()));
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = range.substr(dash + 1);
  RangeSpec spec;
  spec.first = ParseNumber(first);
  spec.last = ParseNumber(last);
  if (!spec.first && !first.empty()) return std::nullopt;
  if (!spec.last && !last.empty()) return std::nullopt;
  if (!spec.first && !spec.last) return std::nullopt;
  if (spec.first && spec.last && *spec.last < *spec.first) return std::nullopt;
  return spec;
}

std::optional<ByteRange> Resolve(const RangeSpec& spec, std::uint64_t size) {
  if (!spec.first) {
    if (*spec.last == 0 || size == 0) return std::nullopt;
    return ByteRange{size - std::min(*spec.last, size), size};
  }
  if (*spec.first >= size) return std::nullopt;
  const std::uint64_t end = spec.last && *spec.last < size ? *spec.last + 1 : size;
  return ByteRange{*spec.first, end};
}

const char* ReasonPhrase(int status) {
  struct Phrase {
    int status;
    const char* text;
  };
  static constexpr std::array<Phrase, 26> kPhrases = {{
      {100, "Continue"},
      {103, "Early Hints"},
      {200, "OK"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {416, "Range Not Satisfiable"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
  }};
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Scripted";
}

}  // namespace dartfs::origin
