// Fields of JSON from elsewhere, by type: what is absent or of another type is nullopt or nullptr,
// where the library's own accessors throw.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace dartfs::app {

const nlohmann::json* Field(const nlohmann::json& object, const char* name);
std::optional<std::string> TextField(const nlohmann::json& object, const char* name);
std::optional<int64_t> NumberField(const nlohmann::json& object, const char* name);
std::optional<bool> BoolField(const nlohmann::json& object, const char* name);

}  // namespace dartfs::app
