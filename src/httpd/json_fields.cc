#include "httpd/json_fields.h"

#include <nlohmann/json.hpp>

namespace dartfs::httpd {

using nlohmann::json;

const json* JsonMember(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::optional<std::string> JsonText(const json& object, const char* name) {
  const json* member = JsonMember(object, name);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get_ref<const std::string&>();
}

std::optional<int64_t> JsonInteger(const json& object, const char* name) {
  const json* member = JsonMember(object, name);
  if (member == nullptr || !member->is_number_integer()) return std::nullopt;
  // The library would wrap it.
  if (member->is_number_unsigned() && member->get<uint64_t>() > INT64_MAX) return std::nullopt;
  return member->get<int64_t>();
}

std::string JsonQuote(std::string_view text) {
  return json(std::string(text)).dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace dartfs::httpd
