// Base64 (RFC 4648 section 4), and the Basic logins made of it (RFC 7617). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dartfs::httpd {

std::string Base64Encode(std::string_view bytes);
// nullopt unless all of `text` is base64 with its padding.
std::optional<std::string> Base64Decode(std::string_view text);

// "Basic <base64 of user:password>".
std::string BasicAuthorization(std::string_view user, std::string_view password);

}  // namespace dartfs::httpd
