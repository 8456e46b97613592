// Fields of JSON from elsewhere, by type: what is absent or of another type is nullopt, where the
// library's own accessors throw. For .cc files only: the library's header is heavy.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace dartfs::app {

inline const nlohmann::json* Field(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

inline std::optional<std::string> TextField(const nlohmann::json& object, const char* name) {
  const nlohmann::json* field = Field(object, name);
  if (field == nullptr || !field->is_string()) return std::nullopt;
  return field->get_ref<const std::string&>();
}

inline std::optional<int64_t> NumberField(const nlohmann::json& object, const char* name) {
  const nlohmann::json* field = Field(object, name);
  if (field == nullptr || !field->is_number_integer()) return std::nullopt;
  return field->get<int64_t>();
}

inline std::optional<bool> BoolField(const nlohmann::json& object, const char* name) {
  const nlohmann::json* field = Field(object, name);
  if (field == nullptr || !field->is_boolean()) return std::nullopt;
  return field->get<bool>();
}

}  // namespace dartfs::app
