#include "app/json_fields.h"

#include <nlohmann/json.hpp>

namespace dartfs::app {

using nlohmann::json;

const json* Field(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> TextField(const json& object, const char* name) {
  const json* field = Field(object, name);
  if (field == nullptr || !field->is_string()) return std::nullopt;
  return field->get_ref<const std::string&>();
}

std::optional<int64_t> NumberField(const json& object, const char* name) {
  const json* field = Field(object, name);
  if (field == nullptr || !field->is_number_integer()) return std::nullopt;
  return field->get<int64_t>();
}

std::optional<bool> BoolField(const json& object, const char* name) {
  const json* field = Field(object, name);
  if (field == nullptr || !field->is_boolean()) return std::nullopt;
  return field->get<bool>();
}

}  // namespace dartfs::app
