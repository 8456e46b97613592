// Service: what a listener's requests lead to: which door, what is refused there, who answers.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "httpd/client_checks.h"
#include "httpd/door.h"
#include "httpd/exchange.h"
#include "httpd/url_handler.h"

namespace dartfs::httpd {

// Answers for one kind of door; null where a node has none of it.
struct ServiceHandlers {
  const UrlHandler* urls = nullptr;  // prefix, fixed origin, proxy
  Handler* registry = nullptr;
  Handler* connect = nullptr;
  Handler* admin = nullptr;
  Handler* peer = nullptr;
};

struct ServiceOptions {
  Doors doors;  // those without a handler are shut
  ClientPolicy policy;
};

class Service final : public Handler {
 public:
  // The handlers outlive it.
  Service(ServiceOptions options, ServiceHandlers handlers);
  void Handle(ExchangePtr exchange) override;
  // The operator is let in.
  bool ServesWhenFull(const Request& request, const Listener& listener) const override;

 private:
  Doors DoorsFor(const Listener& listener) const;
  const Doors& DoorsOf(const Listener& listener) const;
  void Pass(ExchangePtr exchange, const Knock& knock);
  void RespondOptions(ExchangePtr exchange) const;
  void RespondNothing(ExchangePtr exchange) const;

  const ServiceOptions options_;
  const ServiceHandlers handlers_;
  std::array<Doors, 8> doors_;  // by what a listener serves
};

}  // namespace dartfs::httpd
