// ServeObject: the answer to a GET or HEAD of an object: validators, conditions, ranges, parts.
#pragma once

#include <memory>

#include "core/engine/engine.h"
#include "httpd/exchange.h"
#include "httpd/object_body.h"

namespace dartfs::httpd {

// Where a client stands towards the listener: a browser takes what is served under the listener's
// own origin for its pages, and what comes through it as a proxy for the site's own.
enum class Standing : uint8_t { kOwnOrigin, kProxy };

// What every answer of the client plane carries: Via, X-Cache, nosniff, and under the listener's
// own origin a sandbox for pages.
void AddClientPlane(ResponseHead& head, BytesFrom from, Standing standing);

// Answers at once with the head, or once the first byte is there. `requester`: for whom blocks are
// fetched; `reauthorize` and `error_form` as in ObjectParts. Any thread.
void ServeObject(core::Store& store, ExchangePtr exchange, std::shared_ptr<core::Object> object,
                 std::shared_ptr<const core::Requester> requester, Standing standing,
                 Reauthorize reauthorize = {}, ErrorForm error_form = nullptr);

}  // namespace dartfs::httpd
