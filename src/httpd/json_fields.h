// Fields of JSON from elsewhere, by type: what is absent or of another type is nullopt or nullptr,
// where the library's own accessors throw.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dartfs::httpd {

// nullptr unless `object` is an object with that member.
const nlohmann::json* JsonMember(const nlohmann::json& object, const char* name);
std::optional<std::string> JsonText(const nlohmann::json& object, const char* name);
std::optional<int64_t> JsonInteger(const nlohmann::json& object, const char* name);

// `text` between quotes, as a JSON string; what is not UTF-8 is replaced.
std::string JsonQuote(std::string_view text);

}  // namespace dartfs::httpd
