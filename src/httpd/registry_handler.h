// RegistryHandler: the registry mirror, /v2/... of a listener. Blobs by digest come out of the
// cache; everything else is asked of the registry each time, with the client's method, and handed
// on. Nothing is written.
//
// Which registry: the one that ns= names, within what is allowed, else the fixed one. With which
// credential: registry_tokens.h. A client that only asks whether it needs a login (/v2/) sees the
// registry's own answer, unless the operator has a login there: then it needs none.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/unique_function.h"
#include "core/engine/engine.h"
#include "httpd/exchange.h"
#include "httpd/object_body.h"
#include "httpd/registry_path.h"
#include "httpd/registry_tokens.h"
#include "httpd/registry_upstreams.h"
#include "httpd/relay.h"

namespace dartfs::httpd {

// What the mirror hands its exchanges to.
struct RegistryWays {
  // Answers with the object. Blocks that are fetched later may need another token than the one that
  // opened it: `reauthorize` gives it.
  std::function<void(ExchangePtr, std::shared_ptr<core::Object>,
                     std::shared_ptr<const core::Requester>, Reauthorize reauthorize)>
      serve;
  // RelayCall.
  std::function<void(ExchangePtr, core::HttpRequest, RelayOptions)> relay;
};
// ServeObject and RelayCall.
RegistryWays WaysOf(core::Engine& engine);

struct RegistryHandlerOptions {
  RegistryUpstreams upstreams;
  // Of opening a blob, and of a whole answer that is handed on, blobs aside.
  core::Duration timeout = std::chrono::seconds(60);
};

class RegistryHandler final : public Handler {
 public:
  // Everything given outlives it; it outlives its exchanges.
  RegistryHandler(core::Engine& engine, RegistryTokens& tokens, RegistryWays ways,
                  RegistryHandlerOptions options);

  void Handle(ExchangePtr exchange) override;

 private:
  struct Ask;
  using AskPtr = std::shared_ptr<const Ask>;
  // One request to the registry: with which Authorization, and how many were refused before.
  struct Attempt {
    std::string authorization;
    int refused = 0;
  };

  void OpenBlob(ExchangePtr exchange, AskPtr ask, Attempt attempt);
  void OnOpened(ExchangePtr exchange, AskPtr ask, Attempt attempt,
                core::Result<std::shared_ptr<core::Object>> object);
  void Relay(ExchangePtr exchange, AskPtr ask, Attempt attempt);
  // Goes on with `next` once there is another Authorization.
  using Next = void (RegistryHandler::*)(ExchangePtr, AskPtr, Attempt);
  void Retry(ExchangePtr exchange, AskPtr ask, Attempt attempt, std::string challenge, Next next);

  core::Engine& engine_;
  RegistryTokens& tokens_;
  const RegistryWays ways_;
  const RegistryHandlerOptions options_;
};

}  // namespace dartfs::httpd
