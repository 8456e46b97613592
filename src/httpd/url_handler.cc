#include "httpd/url_handler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "core/base/credentials.h"
#include "core/base/text.h"
#include "httpd/relay.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::MakeError;
using core::Object;
using core::Result;
using core::Url;

bool MatchesHost(std::string_view pattern, const Url& url) {
  if (pattern.starts_with("*.")) {
    const std::string_view domain = pattern.substr(1);
    return url.host.size() > domain.size() &&
           core::EqualsIgnoreCase(
               std::string_view(url.host).substr(url.host.size() - domain.size()), domain);
  }
  return core::EqualsIgnoreCase(pattern, url.host) ||
         core::EqualsIgnoreCase(pattern, url.host + ":" + std::to_string(url.EffectivePort()));
}

// RFC 9111 section 3.5: what an Authorization has brought is for a shared cache only where the
// origin says so.
bool MayShareAuthorized(const core::AnswerFields& answer) {
  constexpr std::array<std::string_view, 3> kAllow = {"public", "must-revalidate", "s-maxage"};
  for (const core::HttpHeader& field : answer.headers) {
    if (field.name != "Cache-Control") continue;
    for (const std::string_view each : core::Split(field.value, ',')) {
      const std::string_view name = core::TrimAscii(each.substr(0, each.find('=')));
      if (std::any_of(kAllow.begin(), kAllow.end(), [name](std::string_view allowed) {
            return core::EqualsIgnoreCase(name, allowed);
          })) {
        return true;
      }
    }
  }
  return false;
}

// A redirect to a place on the same host stays behind the prefix: the client resolves it against
// ours.
void KeepBehindPrefix(ResponseHead& head, const Url& base, const std::string& prefix) {
  const auto location = head.Find("Location");
  if (!location || location->find("://") < location->find_first_of("/?#")) return;
  const auto target = core::ResolveReference(base, *location);
  if (!target) return;
  head.Remove("Location");
  head.AddForeign("Location", "/" + prefix + "/" + target->ToString());
}

}  // namespace

bool HostPatterns::Match(const Url& url) const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::string& pattern) { return MatchesHost(pattern, url); });
}

// A request on its way.
struct UrlHandler::Asked {
  ExchangePtr exchange;
  std::shared_ptr<const core::Requester> requester;
  Door door = Door::kPrefix;
};

UrlHandler::UrlHandler(core::Engine& engine, UrlHandlerOptions options, RelayCounts& counts)
    : engine_(engine), options_(std::move(options)), counts_(counts) {}

Result<Url> UrlHandler::UrlOf(const Knock& knock) const {
  if (knock.door == Door::kFixedOrigin) {
    std::string base = options_.origin;
    while (base.ends_with('/')) base.pop_back();
    return core::ParseUrl(base + std::string(knock.rest));
  }
  auto url = core::ParseUrl(knock.rest);
  if (url && knock.door == Door::kProxy && url->scheme == "http" &&
      options_.proxy_https.Match(*url)) {
    url->scheme = "https";
  }
  return url;
}

Result<std::shared_ptr<const core::Requester>> UrlHandler::RequesterOf(const Request& request,
                                                                       const Knock& knock) const {
  auto own = request.Find("Authorization");
  if (!own) {
    if (auto known = memo_.Find(knock.door, knock.rest)) return known;
  }
  Result<Url> url = UrlOf(knock);
  if (!url) return url.error();
  auto requester = std::make_shared<core::Requester>();
  // The login that a URL carries is for its origin, unless the client has named another.
  requester->authorization = own ? std::move(*own) : core::AuthorizationOf(*url);
  requester->untrusted_url = knock.door != Door::kFixedOrigin;
  url->userinfo.clear();
  requester->url = std::move(*url);
  if (!own && requester->authorization.empty()) memo_.Put(knock.door, knock.rest, requester);
  return std::shared_ptr<const core::Requester>(std::move(requester));
}

void UrlHandler::Handle(ExchangePtr exchange, const Knock& knock) const {
  auto requester = RequesterOf(exchange->request(), knock);
  if (!requester) return exchange->RespondError(requester.error());
  Asked asked;
  asked.door = knock.door;
  asked.requester = std::move(*requester);
  // What a cookie has brought is nobody else's.
  const bool own = knock.door == Door::kProxy && exchange->request().Find("Cookie");
  asked.exchange = std::move(exchange);
  if (own) return Relay(std::move(asked), true);
  Open(std::move(asked));
}

void UrlHandler::Open(Asked asked) const {
  core::OpenOptions options;
  options.authorization = asked.requester->authorization;
  options.ttl = options_.ttl;
  options.immutable = options_.immutable;
  options.verbatim = true;
  options.untrusted_url = asked.requester->untrusted_url;
  options.pass_redirects = options_.pass_redirects.Match(asked.requester->url);
  const Url& url = asked.requester->url;
  const core::CachedOpen cached{
      {}, options.authorization, true, options.pass_redirects, options.untrusted_url};
  if (auto known = engine_.OpenCached(url, cached)) {
    return OnOpened(std::move(asked), std::move(*known));
  }
  options.deadline = engine_.scheduler().clock().Now() + options_.timeout;
  auto shared = std::make_shared<Asked>(std::move(asked));
  engine_.Open(shared->requester->url, std::move(options),
               [this, shared](Result<std::shared_ptr<Object>> result) {
                 OnOpened(std::move(*shared), std::move(result));
               });
}

void UrlHandler::OnOpened(Asked asked, Result<std::shared_ptr<Object>> result) const {
  if (!result) {
    const core::Error& error = result.error();
    if (error.code == Code::kRangeBlind) {
      counts_.range_blind.fetch_add(1, std::memory_order_relaxed);
      return Relay(std::move(asked), true);
    }
    if (error.code == Code::kRedirected) return Relay(std::move(asked), false);
    return asked.exchange->RespondError(error);
  }
  if (asked.door == Door::kProxy) {
    const auto answer = (*result)->answer();
    const bool own = !asked.requester->authorization.empty() && !MayShareAuthorized(*answer);
    if (own || !answer->shared_cacheable) return Relay(std::move(asked), true);
  }
  const Standing standing = asked.door == Door::kProxy ? Standing::kProxy : Standing::kOwnOrigin;
  ServeObject(engine_.store(), std::move(asked.exchange), std::move(*result),
              std::move(asked.requester), standing);
}

void UrlHandler::Relay(Asked asked, bool follow_redirects) const {
  const Request& request = asked.exchange->request();
  core::HttpRequest call;
  call.url = asked.requester->url.ToString();
  call.authorization = asked.requester->authorization;
  call.untrusted_url = asked.requester->untrusted_url;
  call.follow_redirects = follow_redirects;
  AddRelayedFields(request, call);
  if (asked.door == Door::kProxy) {
    if (auto cookie = request.Find("Cookie")) call.headers.push_back({"Cookie", *cookie});
  }
  const Standing standing = asked.door == Door::kProxy ? Standing::kProxy : Standing::kOwnOrigin;
  RelayOptions options;
  options.cookies = asked.door == Door::kProxy;
  const bool behind_prefix = asked.door == Door::kPrefix;
  options.finish = [standing, behind_prefix, requester = asked.requester,
                    prefix = options_.prefix](ResponseHead& head) {
    if (behind_prefix) KeepBehindPrefix(head, requester->url, prefix);
    AddClientPlane(head, BytesFrom::kPass, standing);
  };
  options.on_bytes = [this](uint64_t bytes) {
    counts_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  };
  RelayCall(engine_.http(), std::move(asked.exchange), std::move(call), std::move(options));
}

}  // namespace dartfs::httpd
