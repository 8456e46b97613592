// Scripted misbehaviour: which fault hits which request. What a fault does to an answer is in
// answer.cc and script.cc; README.md has the table.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "origin/http_text.h"

namespace dartfs::origin {

enum class Fault {
  // Ranges.
  kIgnoreRange,     // 200 and the whole object
  kWrongRange,      // 206, consistent, of a range that lies `shift` bytes further
  kShortRange,      // 206 whose Content-Range is as asked and whose Content-Length is shorter
  kTruncatedRange,  // 206, consistent, of `count` bytes less than asked
  kUnknownTotal,    // Content-Range: bytes a-b/*
  kZeroRange,       // 206 "bytes 0-0/*" and one byte, whatever was asked
  kWrongTotal,      // Content-Range with a total that is `shift` too large
  kPastEnd416,      // 416 to a range whose end lies past the object's
  kRangeOn200,      // 200 with Content-Range and the part
  kNoContentRange,  // 206 without Content-Range
  kMultipart,       // 206 multipart/byteranges with one part
  // Framing and the body's end.
  kNoLength,          // close-delimited, no Content-Length
  kChunked,           // chunked, no Content-Length
  kShortBody,         // right head, then the connection closes after `after_bytes` of the body
  kReset,             // the same with a TCP reset
  kExtraBody,         // `count` bytes more than Content-Length says
  kDuplicateLength,   // two Content-Length that differ by `shift`
  kLengthAndChunked,  // Content-Length and Transfer-Encoding: chunked
  kGzip,              // the representation is gzip (stored blocks), though identity was asked
  kGzipLabel,         // Content-Encoding: gzip over identity bytes
  // Statuses.
  kStatus,       // answers `status`; `retry_after` in seconds when it is >= 0
  kHeadRefused,  // `status` (default 403) to HEAD
  kGetOnly,      // 403 to every method but GET, as for a URL signed for GET
  kAuth,         // 401 unless Authorization carries `credential` ("user:password")
  // Redirects. See Expand() for what `target` may hold.
  kRedirect,        // `status` (default 302) to `target`, unless the query has _hop
  kRedirectChain,   // `count` redirects to the same path with _hop=1, 2, ... at prefix `target`
  kRedirectLoop,    // never ends
  kRedirectSigned,  // to a signed URL, another every time, which works for `delay_ms` (0: always)
  // Time.
  kStallBody,  // silence after `after_bytes` of the body, for `delay_ms` (0: for ever)
  kStallHead,  // the same after `after_bytes` of the head (0: before it)
  kSlowHead,   // the head byte by byte, `delay_ms` (default 1) apart
  kSlowBody,   // the body at `rate` bytes a second
  kDelay,      // `delay_ms` before the head
  // Heads.
  kInterim100,         // `count` (default 1) 100 answers before the real one
  kInterim103,         // the same with 103
  kHugeHead,           // `count` bytes (default 65536) of extra header lines
  kGarbage,            // bytes that are not HTTP
  kChangingEtag,       // another ETag for every request
  kWeakEtag,           // W/"..."
  kNoEtag,             // none
  kFreshLastModified,  // Last-Modified equals Date
  kNoLastModified,     // none
  // Connections.
  kHangUp,        // closes without an answer
  kCloseOnReuse,  // closes without an answer when it is not the connection's first request
  kCloseEarly,    // keeps silent about it, but closes `delay_ms` after the answer
  // Content.
  kSwap,  // from now on the path has the content of `target` (of /_gen/S/N/x: of seed N+1)
};

// nullptr: unknown name. Names are those of the enumeration, like "short-range".
const char* NameOf(Fault fault);
std::optional<Fault> ParseFault(std::string_view name);
std::vector<Fault> AllFaults();

struct FaultRule {
  Fault fault = Fault::kStatus;

  // Which requests. All conditions must hold.
  std::string path = "*";        // glob ('*' only) over the path as on the wire, without query
  std::string method = {};       // empty: any
  bool ranged_only = false;      // only requests with a Range header
  std::uint64_t min_offset = 0;  // only ranges that begin there or later; 0: any request
  std::uint64_t skip = 0;        // so many matching requests are let through first
  std::uint64_t every_k = 1;     // then each k-th one
  std::uint64_t times = 0;       // at most so often; 0: no limit
  std::uint64_t for_ms = 0;      // for so long after the rule was set; 0: no limit

  // What it does; see Fault.
  std::uint64_t after_bytes = 0;
  std::int64_t shift = 1;
  std::optional<std::uint64_t> count = {};  // default 1, where Fault says nothing else
  int status = 0;                           // 0: the fault's default
  std::int64_t retry_after = -1;
  bool retry_after_date = false;  // as an HTTP date instead of seconds
  std::uint64_t delay_ms = 0;
  std::uint64_t rate = 1024;
  std::string target = {};
  std::string credential = "user:password";
};

// The rules that fire for one request; at most one of a kind (the first set wins).
class FiredFaults {
 public:
  void Add(const FaultRule& rule);
  // nullptr: does not fire. Valid as long as this.
  const FaultRule* Find(Fault fault) const;
  bool Has(Fault fault) const { return Find(fault) != nullptr; }

 private:
  std::vector<FaultRule> rules_;
};

// Thread-safe.
class FaultTable {
 public:
  // Replaces all rules and forgets what they counted.
  void Set(std::vector<FaultRule> rules);
  void Add(FaultRule rule);
  // The rules in force and how often each has fired.
  struct Entry {
    FaultRule rule;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
  };
  std::vector<Entry> List() const;

  // Counts the request and picks what fires, also of `?fault=name&...` in its query (the same
  // parameters by the same names; a three-digit name is a status; counted per target).
  FiredFaults Match(const Request& request);

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    FaultRule rule;
    Clock::time_point since;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
  };
  static bool Fires(State& state, const Request& request);

  mutable std::mutex mu_;
  // Guarded by mu_.
  std::vector<State> rules_;
  std::map<std::string, State> by_target_;
};

// The rule that `?fault=...` in a query asks for. nullopt: none, or an unknown name.
std::optional<FaultRule> FaultOfQuery(std::string_view query);
// Sets one parameter from text. False: unknown name or bad value.
bool SetParameter(FaultRule& rule, std::string_view name, const std::string& value);

// Replaces {path}, {query} (with its '?', empty when there is none), {name} (last path segment),
// {host} (the Host header) and {hop} in a redirect's target.
std::string Expand(std::string_view target, const Request& request, std::uint64_t hop);

}  // namespace dartfs::origin
