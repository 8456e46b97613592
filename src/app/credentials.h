// What a login in a URL means as a request header.
#pragma once

#include <string>

#include "core/base/url.h"

namespace dartfs::app {

// "Basic <base64 of user:password>" (RFC 7617), for the Authorization header alone; empty without a
// login.
std::string AuthorizationOf(const core::Url& url);

}  // namespace dartfs::app
