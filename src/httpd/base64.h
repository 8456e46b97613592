// Base64 (RFC 4648 section 4). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dartfs::httpd {

// nullopt unless all of `text` is base64 with its padding.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace dartfs::httpd
