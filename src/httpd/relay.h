// Relay: an origin's answer handed on to a client as it comes: for what is not cached, and for
// origins that serve no ranges. Framing towards the client is always our own; of the origin's
// fields those that describe what it sent.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/unique_function.h"
#include "core/io/http_client.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

struct RelayOptions {
  // Added to the answer's head, after the origin's fields; may change it. Any thread, must not
  // block.
  core::UniqueFunction<void(ResponseHead&)> finish = {};
  bool cookies = false;  // Set-Cookie goes to the client
  // A 401 of the origin, its challenge as sent. True: the hook has taken the exchange over and
  // answers it; its second argument is the call's own exchange.
  core::UniqueFunction<bool(const std::string& challenge, ExchangePtr& exchange)> unauthorized = {};
  // An error before the head: answers the exchange in place of ErrorAnswer. Empty: that does.
  core::UniqueFunction<void(const core::Error& error, ExchangePtr exchange)> failed = {};
  // Counts a body's bytes, as they come. Any thread. Empty: nobody wants it.
  core::UniqueFunction<void(uint64_t bytes)> on_bytes = {};
};

// Starts the call and answers the exchange with what it brings: status, entity fields, body. A
// client's HEAD is answered from the head alone, also where `request` is a GET. An error before the
// head is answered as ErrorAnswer says, a later one cuts the answer off. Any thread.
void RelayCall(core::HttpClient& http, ExchangePtr exchange, core::HttpRequest request,
               RelayOptions options = {});

// What of a client's request goes on to the origin in a relayed one: Accept, Accept-Language,
// Range and the conditions, User-Agent.
void AddRelayedFields(const Request& from, core::HttpRequest& to);

}  // namespace dartfs::httpd
