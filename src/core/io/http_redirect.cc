#include "core/io/http_redirect.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

// They say which bytes are asked for, or by whom: nothing that opens a door.
constexpr std::array<std::string_view, 13> kDescriptive = {
    "accept",   "accept-language",     "cache-control",
    "if-match", "if-modified-since",   "if-none-match",
    "if-range", "if-unmodified-since", "pragma",
    "range",    "traceparent",         "user-agent",
    "via"};

constexpr std::array<std::string_view, 3> kOfTheObject = {"X-Repo-Commit", "X-Linked-Etag",
                                                          "X-Linked-Size"};
constexpr size_t kMaxKeptBytes = 1024;
constexpr size_t kMaxUserAgentBytes = 1024;

bool IsDescriptive(std::string_view name) {
  return std::any_of(kDescriptive.begin(), kDescriptive.end(),
                     [&](std::string_view known) { return EqualsIgnoreCase(known, name); });
}

bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  });
}

bool IsValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\t') || u == 0x7f;
  });
}

// "scheme" of an absolute reference, lower-cased; empty for a relative one.
std::string SchemeOf(std::string_view reference) {
  const size_t end = reference.find_first_of(":/?#");
  if (end == std::string_view::npos || reference[end] != ':') return "";
  return ToLowerAscii(reference.substr(0, end));
}

}  // namespace

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<HttpHop> FirstHop(const HttpRequest& request) {
  HttpHop hop;
  TRY_ASSIGN(hop.url, ParseUrl(request.url));
  if (!hop.url.userinfo.empty()) {
    return MakeError(Code::kInvalidArgument,
                     "a login in the URL " + RedactUrl(request.url) + " was not taken out");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return MakeError(Code::kInvalidArgument,
                     "method \"" + EscapeForeign(request.method, 40) + "\" is not GET or HEAD");
  }
  if (!IsValue(request.user_agent)) {
    return MakeError(Code::kInvalidArgument, "the User-Agent header can't be sent");
  }
  for (const HttpHeader& header : request.headers) {
    if (IsName(header.name) && IsValue(header.value)) continue;
    return MakeError(Code::kInvalidArgument,
                     "header \"" + EscapeForeign(header.name, 80) + "\" can't be sent");
  }
  if (!IsValue(request.authorization)) {
    return MakeError(Code::kInvalidArgument, "the Authorization header can't be sent");
  }
  hop.headers = request.headers;
  hop.authorization = request.authorization;
  hop.user_agent = request.user_agent.substr(0, kMaxUserAgentBytes);
  hop.head = request.method == "HEAD";
  return hop;
}

Result<HttpHop> FollowRedirect(HttpHop from, const HttpHead& head) {
  const std::string seen =
      RedactUrl(from.url.ToString()) + " answered " + std::to_string(head.status);
  const auto location = head.Find("location");
  if (!location || location->empty()) {
    return MakeError(Code::kBadResponse, seen + " without a (single) Location");
  }
  const std::string scheme = SchemeOf(*location);
  if (!scheme.empty() && scheme != "http" && scheme != "https") {
    return MakeError(Code::kRefused, seen + " and points to scheme \"" + EscapeForeign(scheme, 40) +
                                         "\", not http or https");
  }
  Result<Url> target = ResolveReference(from.url, *location);
  if (!target || !target->userinfo.empty()) {
    return MakeError(Code::kBadResponse,
                     seen + " with a Location that can't be followed: " + RedactUrl(*location));
  }
  if (from.url.scheme == "https" && target->scheme == "http") {
    return MakeError(Code::kRefused,
                     seen + " and points from https to http: " + RedactUrl(target->ToString()));
  }
  if (target->Authority() != from.url.Authority()) {
    from.authorization.clear();
    std::erase_if(from.headers, [](const HttpHeader& h) { return !IsDescriptive(h.name); });
  }
  from.url = std::move(target).value();
  return from;
}

void NoteRedirect(const HttpHead& redirect, std::vector<HttpHeader>* kept) {
  for (const std::string_view name : kOfTheObject) {
    const auto value = redirect.Find(name);
    if (!value || value->size() > kMaxKeptBytes) continue;
    std::erase_if(*kept, [name](const HttpHeader& h) { return h.name == name; });
    kept->push_back({std::string(name), std::string(*value)});
  }
}

}  // namespace dartfs::core
