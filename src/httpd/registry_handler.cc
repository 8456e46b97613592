#include "httpd/registry_handler.h"

#include <utility>
#include <variant>

#include "core/base/digest.h"
#include "httpd/object_answer.h"
#include "httpd/registry_answers.h"

namespace dartfs::httpd {

using core::Code;
using core::Error;
using core::Result;

namespace {

// Nothing, a token that is refused, its renewal.
constexpr int kMostRefusals = 2;

}  // namespace

// What is asked, of whom and for whom: the same for all attempts.
struct RegistryHandler::Ask {
  RegistryRoute route = RegistryRoute::kOther;
  bool cached = false;         // a blob that the cache can name
  bool may_authorize = false;  // else a 401 is the client's affair
  core::Url url;
  RegistryRequest request;
};

RegistryWays WaysOf(core::Engine& engine) {
  RegistryWays ways;
  ways.serve = [&engine](ExchangePtr exchange, std::shared_ptr<core::Object> object,
                         std::shared_ptr<const core::Requester> requester, Reauthorize again) {
    ServeObject(engine.store(), std::move(exchange), std::move(object), std::move(requester),
                Standing::kOwnOrigin, std::move(again), [](const Error& error) {
                  return RegistryErrorAnswer(error, RegistryRoute::kBlob);
                });
  };
  ways.relay = [&engine](ExchangePtr exchange, core::HttpRequest request, RelayOptions options) {
    RelayCall(engine.http(), std::move(exchange), std::move(request), std::move(options));
  };
  return ways;
}

RegistryHandler::RegistryHandler(core::Engine& engine, RegistryTokens& tokens, RegistryWays ways,
                                 RegistryHandlerOptions options)
    : engine_(engine), tokens_(tokens), ways_(std::move(ways)), options_(std::move(options)) {}

void RegistryHandler::Handle(ExchangePtr exchange) {
  const Request& request = exchange->request();
  if (request.method != "GET" && request.method != "HEAD") {
    return RespondWith(std::move(exchange), RegistryReadOnlyAnswer());
  }
  auto parsed = ParseRegistryPath(request.target);
  if (const auto* fault = std::get_if<RegistryFault>(&parsed)) {
    return RespondWith(std::move(exchange), RegistryFaultAnswer(400, fault->code, fault->why));
  }
  const auto& path = std::get<RegistryPath>(parsed);
  auto registry = FindRegistry(options_.upstreams, path.ns);
  if (!registry) {
    const auto none = registry.error().code == Code::kNotFound ? RegistryRoute::kOther : path.route;
    return RespondWith(std::move(exchange), RegistryErrorAnswer(registry.error(), none));
  }
  auto url = RegistryTarget(*registry, path.target);
  if (!url) return RespondWith(std::move(exchange), RegistryErrorAnswer(url.error(), path.route));

  auto ask = std::make_shared<Ask>();
  ask->route = path.route;
  ask->cached = path.route == RegistryRoute::kBlob && core::ParseDigest(path.reference).has_value();
  ask->url = std::move(url).value();
  ask->request = {std::move(registry).value(), path.Scope(),
                  request.Find("Authorization").value_or("")};
  ask->may_authorize = path.route != RegistryRoute::kBase ||
                       !ask->request.client_authorization.empty() ||
                       tokens_.HasLogin(ask->request.registry);
  Attempt attempt{tokens_.Known(ask->request)};
  if (ask->cached) return OpenBlob(std::move(exchange), std::move(ask), std::move(attempt));
  Relay(std::move(exchange), std::move(ask), std::move(attempt));
}

void RegistryHandler::OpenBlob(ExchangePtr exchange, AskPtr ask, Attempt attempt) {
  const core::CachedOpen cached{.authorization = attempt.authorization, .verbatim = true};
  if (auto known = engine_.OpenCached(ask->url, cached)) {
    return OnOpened(std::move(exchange), std::move(ask), std::move(attempt), *std::move(known));
  }
  core::OpenOptions open;
  open.authorization = attempt.authorization;
  open.verbatim = true;
  open.deadline = engine_.scheduler().clock().Now() + options_.timeout;
  const core::Url& url = ask->url;
  engine_.Open(
      url, std::move(open),
      [this, exchange = std::move(exchange), ask,
       attempt = std::move(attempt)](Result<std::shared_ptr<core::Object>> object) mutable {
        OnOpened(std::move(exchange), std::move(ask), std::move(attempt), std::move(object));
      });
}

void RegistryHandler::OnOpened(ExchangePtr exchange, AskPtr ask, Attempt attempt,
                               Result<std::shared_ptr<core::Object>> object) {
  if (!object) {
    Error error = std::move(object).error();
    if (error.code == Code::kUnauthorized) {
      return Retry(std::move(exchange), std::move(ask), std::move(attempt),
                   std::move(error.challenge), &RegistryHandler::OpenBlob);
    }
    // Not to be had in blocks: as it comes.
    if (error.code == Code::kRangeBlind || error.code == Code::kTooLarge) {
      return Relay(std::move(exchange), std::move(ask), std::move(attempt));
    }
    return RespondWith(std::move(exchange), RegistryErrorAnswer(error, ask->route));
  }
  auto requester = std::make_shared<const core::Requester>(
      core::Requester{ask->url, std::move(attempt.authorization)});
  ways_.serve(std::move(exchange), std::move(object).value(), std::move(requester),
              [this, ask](const Error& refusal, const std::string& refused, Authorized done) {
                tokens_.Authorize(ask->request, refusal.challenge, refused, std::move(done));
              });
}

void RegistryHandler::Relay(ExchangePtr exchange, AskPtr ask, Attempt attempt) {
  core::HttpRequest request;
  request.url = ask->url.ToString();
  request.method = exchange->request().method;
  request.authorization = attempt.authorization;
  if (!ask->cached) request.deadline = engine_.scheduler().clock().Now() + options_.timeout;
  AddRelayedFields(exchange->request(), request);
  RelayOptions options;
  options.finish = [](ResponseHead& head) {
    AddClientPlane(head, BytesFrom::kPass, Standing::kOwnOrigin);
  };
  options.failed = [ask](const Error& error, ExchangePtr failed) {
    RespondWith(std::move(failed), RegistryErrorAnswer(error, ask->route));
  };
  if (ask->may_authorize) {
    options.unauthorized = [this, ask, attempt = std::move(attempt)](const std::string& challenge,
                                                                     ExchangePtr& own) mutable {
      Retry(std::move(own), ask, std::move(attempt), challenge, &RegistryHandler::Relay);
      return true;
    };
  }
  ways_.relay(std::move(exchange), std::move(request), std::move(options));
}

void RegistryHandler::Retry(ExchangePtr exchange, AskPtr ask, Attempt attempt,
                            std::string challenge, Next next) {
  if (attempt.refused == kMostRefusals) {
    Error error = core::MakeError(Code::kUnauthorized,
                                  ask->request.registry.HostPort() + " refuses the login");
    error.challenge = std::move(challenge);
    return RespondWith(std::move(exchange), RegistryErrorAnswer(error, ask->route));
  }
  const RegistryRequest request = ask->request;
  const std::string refused = attempt.authorization;
  tokens_.Authorize(request, std::move(challenge), refused,
                    [this, exchange = std::move(exchange), ask, next,
                     count = attempt.refused + 1](Result<std::string> authorization) mutable {
                      if (!authorization) {
                        return RespondWith(std::move(exchange),
                                           RegistryErrorAnswer(authorization.error(), ask->route));
                      }
                      (this->*next)(std::move(exchange), std::move(ask),
                                    {std::move(authorization).value(), count});
                    });
}

}  // namespace dartfs::httpd
