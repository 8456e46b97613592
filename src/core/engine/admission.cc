#include "core/engine/admission.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {

namespace {

constexpr size_t kMaxValidatorBytes = 1024;
constexpr size_t kMaxChallengeBytes = 4096;

std::string HeaderOr(const HttpHead& head, std::string_view name, std::string fallback = "") {
  const auto value = head.Find(name);
  return value ? std::string(TrimAscii(*value)) : std::move(fallback);
}

// For RFC 9110's weak comparison.
std::string_view WithoutWeakness(std::string_view etag) {
  return etag.starts_with("W/") ? etag.substr(2) : etag;
}

bool Coded(const HttpHead& head) {
  for (const HttpHeader& header : head.headers) {
    if (!EqualsIgnoreCase(header.name, "Content-Encoding")) continue;
    const auto value = TrimAscii(header.value);
    if (!value.empty() && !EqualsIgnoreCase(value, "identity")) return true;
  }
  return false;
}

bool HasHeader(const HttpHead& head, std::string_view name) {
  return std::any_of(head.headers.begin(), head.headers.end(), [name](const HttpHeader& header) {
    return EqualsIgnoreCase(header.name, name);
  });
}

Version VersionOf(const HttpHead& head, bool fixed, std::optional<uint64_t> size) {
  const std::string etag = HeaderOr(head, "ETag");
  const std::string modified = HeaderOr(head, "Last-Modified");
  const std::string date = HeaderOr(head, "Date");
  VersionInputs inputs;
  inputs.fixed = fixed;
  inputs.etag = etag;
  inputs.last_modified = modified;
  inputs.date = date;
  inputs.size = size;
  return MakeVersion(inputs);
}

// The validator that the version was made of must be there and equal: an answer without one could
// be of any generation.
Status CheckValidator(const HttpHead& head, const ExpectedBlock& expected) {
  const auto version = ParseVersion(expected.version);
  if (!version) return {};
  if (!version->etag().empty()) {
    const std::string etag = HeaderOr(head, "ETag");
    if (etag == version->etag()) return {};
    return MakeError(Code::kStale, expected.what + ": the object has another ETag now");
  }
  if (!version->last_modified().empty()) {
    const std::string modified = HeaderOr(head, "Last-Modified");
    // A weak ETag makes no version, but another one is another.
    const std::string etag = HeaderOr(head, "ETag");
    if (!expected.etag.empty() && !etag.empty() && etag != expected.etag) {
      return MakeError(Code::kStale, expected.what + ": the object has another weak ETag now");
    }
    if (modified == version->last_modified()) return {};
    return MakeError(Code::kStale, expected.what + ": the object has another Last-Modified now");
  }
  return {};
}

Status CheckCoding(const HttpHead& head, const std::string& what) {
  if (!Coded(head)) return {};
  return MakeError(Code::kBadResponse, what + ": the origin sent a Content-Encoding (\"" +
                                           EscapeForeign(HeaderOr(head, "Content-Encoding"), 32) +
                                           "\") although identity was asked for");
}

// The size differs. Where the validator is the same, or the bytes can never change, the origin
// contradicts itself; else it is another version.
Error OtherTotal(const ExpectedBlock& expected) {
  const auto version = ParseVersion(expected.version);
  const bool contradiction =
      version && (version->kind == Version::Kind::kETag || version->kind == Version::Kind::kFixed);
  if (contradiction) {
    return MakeError(Code::kBadResponse,
                     expected.what + ": the origin states another size for the same version");
  }
  return MakeError(Code::kStale, expected.what + ": the object has another size now");
}

Error BadRange(const HttpHead& head, const std::string& what) {
  const auto value = head.Find("Content-Range");
  return MakeError(Code::kBadResponse,
                   what + ": 206 with Content-Range \"" +
                       (value ? EscapeForeign(*value, 80) : std::string("(none)")) +
                       "\", which is not the range asked for");
}

int64_t RetryAfterMs(const HttpHead& head) {
  const auto value = head.Find("Retry-After");
  if (!value) return -1;
  if (const auto seconds = ParseUint(TrimAscii(*value))) {
    return static_cast<int64_t>(std::min<uint64_t>(*seconds, 86400) * 1000);
  }
  const auto date = ParseHttpDate(TrimAscii(*value));
  const auto now = ParseHttpDate(HeaderOr(head, "Date"));
  if (!date || !now) return -1;
  return std::clamp<int64_t>(*date - *now, 0, 86400) * 1000;
}

bool MayStandInAField(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\t') || u == 0x7f;
  });
}

// Fields that would make it too long are left out whole: half a challenge is another one.
std::string ChallengeOf(const HttpHead& head) {
  std::string challenge;
  for (const HttpHeader& header : head.headers) {
    if (!EqualsIgnoreCase(header.name, "WWW-Authenticate")) continue;
    const std::string_view value = TrimAscii(header.value);
    const std::string_view comma = challenge.empty() ? "" : ", ";
    if (value.empty() || !MayStandInAField(value)) continue;
    if (challenge.size() + comma.size() + value.size() > kMaxChallengeBytes) continue;
    challenge.append(comma).append(value);
  }
  return challenge;
}

Code CodeOfStatus(int status) {
  switch (status) {
    case 401:
    case 407:
      return Code::kUnauthorized;
    case 403:
      return Code::kForbidden;
    case 404:
      return Code::kNotFound;
    case 408:
      return Code::kUnavailable;
    case 410:
      return Code::kGone;
    case 412:
      return Code::kStale;
    case 429:
    case 503:
      return Code::kTooManyRequests;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kBadResponse;
  }
}

// RFC 9110 section 15.3.7.2: what is announced as several parts is not one's bytes.
Status CheckOnePart(const HttpHead& head, const std::string& what) {
  constexpr std::string_view kSeveral = "multipart/byteranges";
  const std::string type = HeaderOr(head, "Content-Type");
  if (!EqualsIgnoreCase(std::string_view(type).substr(0, kSeveral.size()), kSeveral)) return {};
  return MakeError(Code::kBadResponse, what +
                                           ": several parts (multipart/byteranges) came where "
                                           "one range was asked for");
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  text = TrimAscii(text);
  if (text.size() < 6 || !EqualsIgnoreCase(text.substr(0, 6), "bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == text.npos || slash == text.npos || slash < dash) return std::nullopt;
  const auto first = ParseUint(text.substr(0, dash));
  const auto last = ParseUint(text.substr(dash + 1, slash - dash - 1));
  const auto total_text = text.substr(slash + 1);
  const auto total = ParseUint(total_text);
  if (!first || !last || *last < *first) return std::nullopt;
  if (!total && total_text != "*") return std::nullopt;
  if (total && *last >= *total) return std::nullopt;
  return ContentRange{*first, *last, total};
}

std::optional<uint64_t> ParseUnsatisfiedRange(std::string_view text) {
  text = TrimAscii(text);
  if (text.size() < 8 || !EqualsIgnoreCase(text.substr(0, 8), "bytes */")) return std::nullopt;
  return ParseUint(text.substr(8));
}

Error StatusError(const HttpHead& head, const std::string& what) {
  Error error = MakeError(CodeOfStatus(head.status),
                          what + ": the origin answered " + std::to_string(head.status));
  error.http_status = head.status;
  error.retry_after_ms = RetryAfterMs(head);
  if (head.status == 401) error.challenge = ChallengeOf(head);
  return error;
}

Status CheckBlockHead(const HttpHead& head, const ExpectedBlock& expected) {
  if (head.status == 200) {
    Error error = MakeError(Code::kRangeBlind,
                            expected.what + ": the origin answered 200 to a ranged request");
    error.http_status = 200;
    return error;
  }
  if (head.status == 416) {
    const auto value = head.Find("Content-Range");
    const auto total = value ? ParseUnsatisfiedRange(*value) : std::nullopt;
    if (total && *total != expected.total) {
      return MakeError(Code::kStale, expected.what + ": the object has another size now");
    }
  }
  if (head.status != 206) return StatusError(head, expected.what);
  TRY(CheckCoding(head, expected.what));
  TRY(CheckOnePart(head, expected.what));
  const auto value = head.Find("Content-Range");
  const auto range = value ? ParseContentRange(*value) : std::nullopt;
  if (!range || !range->total) return BadRange(head, expected.what);
  TRY(CheckValidator(head, expected));
  if (*range->total != expected.total) return OtherTotal(expected);
  if (range->first != expected.first || range->last != expected.last) {
    return BadRange(head, expected.what);
  }
  if (HasHeader(head, "Content-Length")) {
    const auto length = ParseUint(HeaderOr(head, "Content-Length"));
    if (!length || *length != expected.last - expected.first + 1) {
      return MakeError(Code::kBadResponse,
                       expected.what + ": Content-Length does not fit the Content-Range");
    }
  }
  return {};
}

Status CheckSpoolHead(const HttpHead& head, const ExpectedBlock& expected) {
  if (head.status != 200) return StatusError(head, expected.what);
  TRY(CheckCoding(head, expected.what));
  TRY(CheckValidator(head, expected));
  if (!HasHeader(head, "Content-Length")) return {};
  const auto length = ParseUint(HeaderOr(head, "Content-Length"));
  if (length && *length == expected.total) return {};
  return MakeError(Code::kStale, expected.what + ": the object has another size now");
}

std::vector<HttpHeader> VersionGuard(std::string_view version) {
  const auto parsed = ParseVersion(version);
  if (!parsed) return {};
  if (!parsed->etag().empty()) return {{"If-Match", std::string(parsed->etag())}};
  if (!parsed->last_modified().empty()) {
    return {{"If-Unmodified-Since", std::string(parsed->last_modified())}};
  }
  return {};
}

bool NamesAnother(const HttpHead& not_modified, std::string_view version, std::string_view etag) {
  const auto differ = [](std::string_view known, std::string_view named) {
    return !known.empty() && !named.empty() && known != named;
  };
  const std::string named = HeaderOr(not_modified, "ETag").substr(0, kMaxValidatorBytes);
  if (differ(WithoutWeakness(etag), WithoutWeakness(named))) return true;
  const auto parsed = ParseVersion(version);
  return parsed && differ(parsed->last_modified(), HeaderOr(not_modified, "Last-Modified"));
}

Result<ProbeFacts> ReadProbeHead(const HttpHead& head, bool fixed, const std::string& what) {
  ProbeFacts facts;
  facts.fields = ReadAnswerFields(head);
  if (head.status == 304) {
    facts.not_modified = true;
    return facts;
  }
  const auto range_text = head.Find("Content-Range");
  if (head.status == 416) {
    const auto total = range_text ? ParseUnsatisfiedRange(*range_text) : std::nullopt;
    if (!total || *total != 0) return StatusError(head, what);
    facts.size = 0;
  } else if (head.status == 206) {
    TRY(CheckCoding(head, what));
    TRY(CheckOnePart(head, what));
    const auto range = range_text ? ParseContentRange(*range_text) : std::nullopt;
    if (!range || range->first != 0 || range->last != 0) return BadRange(head, what);
    if (!range->total) {
      return MakeError(Code::kBadResponse, what + ": the origin hides the size (Content-Range \"" +
                                               EscapeForeign(*range_text, 80) + "\")");
    }
    facts.size = range->total;
  } else if (head.status == 200) {
    TRY(CheckCoding(head, what));
    const auto length = ParseUint(HeaderOr(head, "Content-Length"));
    facts.size = length;
    facts.range_blind = !length || *length != 0;
  } else {
    return StatusError(head, what);
  }
  facts.version = VersionOf(head, fixed, facts.size);
  facts.etag = HeaderOr(head, "ETag").substr(0, kMaxValidatorBytes);
  facts.last_modified = HeaderOr(head, "Last-Modified").substr(0, kMaxValidatorBytes);
  facts.content_type = HeaderOr(head, "Content-Type").substr(0, kMaxValidatorBytes);
  return facts;
}

}  // namespace dartfs::core
