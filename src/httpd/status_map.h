// The one place where an Error becomes an HTTP status (towards clients: CLIENTS.md; towards peers
// WIRE.md section 4 rules). Pure.
#pragma once

#include <string_view>

#include "core/base/result.h"

namespace dartfs::httpd {

// What a client is answered when no byte of the body has gone out. The origin's own refusals (401,
// 403, 404, 410, 429) as they are; an origin that fails or can't be reached 502, a deadline 504,
// our own limits 503.
int StatusOf(core::Code code);

// Whether the client may try again soon: the answer has a Retry-After.
bool IsPassing(int status);

// "Not Found"; "" for a status that has no name.
std::string_view ReasonOf(int status);

}  // namespace dartfs::httpd
