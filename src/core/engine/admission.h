// Admission: what the head of an origin's answer must say before a byte of its body is believed
// (DESIGN.md section 5), and what a probe's answer means (section 7). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/version.h"
#include "core/engine/answer_fields.h"
#include "core/io/http_client.h"

namespace dartfs::core {

// "bytes first-last/total"; nullopt for anything else. `total` is nullopt for "*".
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;  // inclusive
  std::optional<uint64_t> total;
};
std::optional<ContentRange> ParseContentRange(std::string_view text);
// "bytes */total".
std::optional<uint64_t> ParseUnsatisfiedRange(std::string_view text);

// The Error for a status that is not the hoped-for one; `what` names the request ("GET <redacted
// url>"). Carries the status, Retry-After and of a 401 the challenge.
Error StatusError(const HttpHead& head, const std::string& what);

struct ExpectedBlock {
  uint64_t first = 0;        // byte of the object asked for
  uint64_t last = 0;         // inclusive
  uint64_t total = 0;        // size of the object
  std::string_view version;  // IDENTITY.md's version text of the object being read
  std::string_view etag;     // as the probe saw it, weak ones too; empty: none
  std::string what;          // for errors
};

// Success: the body is exactly [first, last] of that version. kRangeBlind: a 200. kStale: 412,
// another validator or another total. Else kBadResponse or the status's error.
Status CheckBlockHead(const HttpHead& head, const ExpectedBlock& expected);

// The same for a whole-object 200 (a spool): validator, and length where it is stated.
Status CheckSpoolHead(const HttpHead& head, const ExpectedBlock& expected);

// Request headers that make the origin refuse (412) rather than send another version.
std::vector<HttpHeader> VersionGuard(std::string_view version);

// Whether a 304 names another version than the one it was asked about (RFC 9111 section 4.3.4): by
// its ETag, compared weakly with `etag` (as the version's answer had it), or by its Last-Modified
// where `version` is made of that. What either side does not name makes no difference.
bool NamesAnother(const HttpHead& not_modified, std::string_view version, std::string_view etag);

// What an answer to `Range: bytes=0-0` says of the object.
struct ProbeFacts {
  bool not_modified = false;     // 304
  bool range_blind = false;      // 200
  std::optional<uint64_t> size;  // absent: range-blind, and the length is not stated
  Version version;
  std::string etag;           // as sent
  std::string last_modified;  // as sent
  std::string content_type;
  AnswerFields fields;
  bool via_redirect = false;  // by another URL; for who knows which was asked for
};
// `fixed`: content-addressed or declared immutable. Errors as above; a 206 that hides the total, or
// is of another range, is kBadResponse.
Result<ProbeFacts> ReadProbeHead(const HttpHead& head, bool fixed, const std::string& what);

}  // namespace dartfs::core
