#include "origin/fault.h"

#include <algorithm>

namespace dartfs::origin {
namespace {

struct FaultName {
  Fault fault;
  const char* name;
};

constexpr FaultName kNames[] = {
    {Fault::kIgnoreRange, "ignore-range"},
    {Fault::kWrongRange, "wrong-range"},
    {Fault::kShortRange, "short-range"},
    {Fault::kTruncatedRange, "truncated-range"},
    {Fault::kUnknownTotal, "unknown-total"},
    {Fault::kZeroRange, "zero-range"},
    {Fault::kWrongTotal, "wrong-total"},
    {Fault::kPastEnd416, "past-end-416"},
    {Fault::kRangeOn200, "range-on-200"},
    {Fault::kNoContentRange, "no-content-range"},
    {Fault::kMultipart, "multipart"},
    {Fault::kNoLength, "no-length"},
    {Fault::kChunked, "chunked"},
    {Fault::kShortBody, "short-body"},
    {Fault::kReset, "reset"},
    {Fault::kExtraBody, "extra-body"},
    {Fault::kDuplicateLength, "duplicate-length"},
    {Fault::kLengthAndChunked, "length-and-chunked"},
    {Fault::kGzip, "gzip"},
    {Fault::kGzipLabel, "gzip-label"},
    {Fault::kStatus, "status"},
    {Fault::kHeadRefused, "head-refused"},
    {Fault::kGetOnly, "get-only"},
    {Fault::kAuth, "auth"},
    {Fault::kRedirect, "redirect"},
    {Fault::kRedirectChain, "redirect-chain"},
    {Fault::kRedirectLoop, "redirect-loop"},
    {Fault::kRedirectSigned, "redirect-signed"},
    {Fault::kStallBody, "stall-body"},
    {Fault::kStallHead, "stall-head"},
    {Fault::kSlowHead, "slow-head"},
    {Fault::kSlowBody, "slow-body"},
    {Fault::kDelay, "delay"},
    {Fault::kInterim100, "interim-100"},
    {Fault::kInterim103, "interim-103"},
    {Fault::kHugeHead, "huge-head"},
    {Fault::kGarbage, "garbage"},
    {Fault::kChangingEtag, "changing-etag"},
    {Fault::kWeakEtag, "weak-etag"},
    {Fault::kNoEtag, "no-etag"},
    {Fault::kFreshLastModified, "fresh-last-modified"},
    {Fault::kNoLastModified, "no-last-modified"},
    {Fault::kHangUp, "hang-up"},
    {Fault::kCloseOnReuse, "close-on-reuse"},
    {Fault::kCloseEarly, "close-early"},
    {Fault::kSwap, "swap"},
};

constexpr std::size_t kMaxTargets = 4096;  // counted `?fault=` targets

bool SetNumber(std::uint64_t& field, const std::string& value) {
  const auto number = ParseSize(value);
  if (number) field = *number;
  return number.has_value();
}

bool SetSigned(std::int64_t& field, const std::string& value) {
  const bool negative = !value.empty() && value[0] == '-';
  const auto number = ParseSize(std::string_view(value).substr(negative ? 1 : 0));
  if (!number || *number > INT64_MAX) return false;
  field = negative ? -static_cast<std::int64_t>(*number) : static_cast<std::int64_t>(*number);
  return true;
}

bool SetBool(bool& field, const std::string& value) {
  if (value != "0" && value != "1" && value != "true" && value != "false") return false;
  field = value == "1" || value == "true";
  return true;
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

const char* NameOf(Fault fault) {
  for (const FaultName& entry : kNames) {
    if (entry.fault == fault) return entry.name;
  }
  return nullptr;
}

std::optional<Fault> ParseFault(std::string_view name) {
  for (const FaultName& entry : kNames) {
    if (entry.name == name) return entry.fault;
  }
  return std::nullopt;
}

std::vector<Fault> AllFaults() {
  std::vector<Fault> all;
  for (const FaultName& entry : kNames) all.push_back(entry.fault);
  return all;
}

void FiredFaults::Add(const FaultRule& rule) {
  if (!Has(rule.fault)) rules_.push_back(rule);
}

const FaultRule* FiredFaults::Find(Fault fault) const {
  for (const FaultRule& rule : rules_) {
    if (rule.fault == fault) return &rule;
  }
  return nullptr;
}

void FaultTable::Set(std::vector<FaultRule> rules) {
  const std::lock_guard lock(mu_);
  rules_.clear();
  by_target_.clear();
  for (FaultRule& rule : rules) rules_.push_back({std::move(rule), Clock::now(), 0, 0});
}

void FaultTable::Add(FaultRule rule) {
  const std::lock_guard lock(mu_);
  rules_.push_back({std::move(rule), Clock::now(), 0, 0});
}

std::vector<FaultTable::Entry> FaultTable::List() const {
  const std::lock_guard lock(mu_);
  std::vector<Entry> out;
  for (const State& state : rules_) out.push_back({state.rule, state.matched, state.fired});
  return out;
}

FiredFaults FaultTable::Match(const Request& request) {
  FiredFaults fired;
  const std::lock_guard lock(mu_);
  if (auto rule = FaultOfQuery(request.query)) {
    if (by_target_.size() >= kMaxTargets) by_target_.clear();
    State& state =
        by_target_.try_emplace(request.target, State{*rule, Clock::now(), 0, 0}).first->second;
    if (Fires(state, request)) fired.Add(state.rule);
  }
  for (State& state : rules_) {
    if (GlobMatch(state.rule.path, request.path) && Fires(state, request)) fired.Add(state.rule);
  }
  return fired;
}

bool FaultTable::Fires(State& state, const Request& request) {
  const FaultRule& rule = state.rule;
  if (!rule.method.empty() && rule.method != request.method) return false;
  const std::string* range = request.Find("Range");
  if (rule.ranged_only && range == nullptr) return false;
  if (rule.min_offset > 0) {
    const auto spec = range == nullptr ? std::nullopt : ParseRange(*range);
    if (!spec || !spec->first || *spec->first < rule.min_offset) return false;
  }
  const auto age = Clock::now() - state.since;
  if (rule.for_ms > 0 && age >= std::chrono::milliseconds(rule.for_ms)) return false;
  const std::uint64_t seen = ++state.matched;
  if (seen <= rule.skip || (seen - rule.skip) % std::max<std::uint64_t>(rule.every_k, 1) != 0) {
    return false;
  }
  if (rule.times > 0 && state.fired >= rule.times) return false;
  ++state.fired;
  return true;
}

std::optional<FaultRule> FaultOfQuery(std::string_view query) {
  const auto name = QueryParameter(query, "fault");
  if (!name) return std::nullopt;
  FaultRule rule;
  if (const auto fault = ParseFault(*name)) {
    rule.fault = *fault;
  } else if (const auto status = ParseNumber(*name); status && *status >= 300 && *status <= 599) {
    rule.fault = Fault::kStatus;
    rule.status = static_cast<int>(*status);
  } else {
    return std::nullopt;
  }
  for (const char* parameter : {"method", "ranged_only", "min_offset", "skip", "every_k", "times",
                                "for_ms", "after_bytes", "shift", "count", "status", "retry_after",
                                "retry_after_date", "delay_ms", "rate", "target", "credential"}) {
    if (const auto value = QueryParameter(query, parameter)) SetParameter(rule, parameter, *value);
  }
  return rule;
}

bool SetParameter(FaultRule& rule, std::string_view name, const std::string& value) {
  if (name == "path") return rule.path = value, true;
  if (name == "method") return rule.method = value, true;
  if (name == "target") return rule.target = value, true;
  if (name == "credential") return rule.credential = value, true;
  if (name == "ranged_only") return SetBool(rule.ranged_only, value);
  if (name == "retry_after_date") return SetBool(rule.retry_after_date, value);
  if (name == "min_offset") return SetNumber(rule.min_offset, value);
  if (name == "skip") return SetNumber(rule.skip, value);
  if (name == "every_k") return SetNumber(rule.every_k, value);
  if (name == "times") return SetNumber(rule.times, value);
  if (name == "for_ms") return SetNumber(rule.for_ms, value);
  if (name == "after_bytes") return SetNumber(rule.after_bytes, value);
  if (name == "delay_ms") return SetNumber(rule.delay_ms, value);
  if (name == "rate") return SetNumber(rule.rate, value);
  if (name == "shift") return SetSigned(rule.shift, value);
  if (name == "retry_after") return SetSigned(rule.retry_after, value);
  if (name == "count") return SetNumber(rule.count.emplace(), value);
  if (name == "status") {
    const auto status = ParseNumber(value);
    if (!status || *status < 100 || *status > 999) return false;
    rule.status = static_cast<int>(*status);
    return true;
  }
  return false;
}

std::string Expand(std::string_view target, const Request& request, std::uint64_t hop) {
  std::string out(target);
  const std::string* host = request.Find("Host");
  ReplaceAll(out, "{path}", request.path);
  ReplaceAll(out, "{query}", request.query.empty() ? "" : "?" + request.query);
  ReplaceAll(out, "{name}", std::string_view(request.path).substr(request.path.rfind('/') + 1));
  ReplaceAll(out, "{host}", host == nullptr ? "" : *host);
  ReplaceAll(out, "{hop}", std::to_string(hop));
  return out;
}

}  // namespace dartfs::origin
