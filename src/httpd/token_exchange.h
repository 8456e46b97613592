// One request to a token service.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/unique_function.h"
#include "core/io/http_client.h"
#include "httpd/token_request.h"

namespace dartfs::httpd {

// Starts `request`, whose URL is MakeTokenRequest's. `done` runs once, as a task of `scheduler`.
// Errors: kUnauthorized where the service refuses (401, 403), kTooManyRequests, kUnavailable,
// kDeadlineExceeded, kRefused, kBadResponse for whatever else it says; the service is named, no
// byte of its answer's body is.
void StartTokenExchange(core::HttpClient& http, core::Scheduler& scheduler,
                        core::HttpRequest request,
                        core::UniqueFunction<void(core::Result<TokenGrant>)> done);

}  // namespace dartfs::httpd
