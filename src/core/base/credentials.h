// Logins as request headers.
#pragma once

#include <string>
#include <string_view>

#include "core/base/url.h"

namespace dartfs::core {

// "Basic <base64 of user:password>" (RFC 7617), for the Authorization header alone.
std::string BasicAuthorization(std::string_view user, std::string_view password);
// Of the login in a URL; empty without one.
std::string AuthorizationOf(const Url& url);

}  // namespace dartfs::core
