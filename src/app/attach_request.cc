#include "app/attach_request.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/json_fields.h"
#include "app/option_table.h"
#include "core/base/text.h"
#include "core/base/url.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;
using nlohmann::json;

// JSON is text; paths are bytes.
std::string Encoded(const std::string& bytes) {
  return core::PercentEncode(bytes, core::UrlSet::kUnreserved);
}

core::Error Malformed() {
  return MakeError(Code::kInvalidArgument,
                   "attach needs a source, a mountpoint, options, a mount namespace and a device");
}

std::string Shown(const std::string& value) {
  return value.empty() ? "without" : EscapeForeign(value);
}

Status CompareWithNode(const OptionRow& row, const std::string& asked, const Options& node) {
  // Whoever asks has found the node by it.
  if (row.name == "cache-dir") return {};
  Options wanted;
  wanted.log_level.clear();
  TRY(row.set(wanted, asked));
  const std::string wants = row.show(wanted);
  const std::string has = row.show(node);
  if (wants == has) return {};
  return MakeError(Code::kRefused,
                   "the mount asks for " + std::string(row.name) + " " + Shown(wants) +
                       ", but the node that has the cache directory " +
                       EscapeForeign(node.cache_dir) + " runs with " + Shown(has) +
                       ", for all its mounts: name the same or leave it out, or give this mount a "
                       "cache directory of its own (--cache-dir DIR, -o cache_dir=DIR)");
}

}  // namespace

AttachRequest MakeAttachRequest(const Invocation& invocation, const std::string& mountpoint) {
  AttachRequest request;
  request.source = invocation.options.source;
  request.mountpoint = mountpoint;
  Options options = invocation.options;
  options.uid = options.uid.value_or(geteuid());
  options.gid = options.gid.value_or(getegid());
  for (const OptionRow* row : invocation.given) {
    if (row->kind != OptionKind::kProcess) {
      request.options[std::string(row->name)] = row->show(options);
    }
  }
  for (const char* owner : {"uid", "gid"}) {
    request.options[owner] = FindOption(owner)->show(options);
  }
  return request;
}

json ToJson(const AttachRequest& request) {
  json options = json::object();
  for (const auto& [name, value] : request.options) options[name] = Encoded(value);
  return {{"source", Encoded(request.source)},
          {"mountpoint", Encoded(request.mountpoint)},
          {"options", std::move(options)},
          {"mount_namespace", request.mount_namespace},
          {"device", request.device}};
}

Result<AttachRequest> AttachRequestFrom(const json& json) {
  AttachRequest request;
  const auto decoded = [](const std::optional<std::string>& text) {
    return text ? core::PercentDecode(*text) : std::nullopt;
  };
  const auto source = decoded(TextField(json, "source"));
  const auto mountpoint = decoded(TextField(json, "mountpoint"));
  const auto space = NumberField(json, "mount_namespace");
  const auto device = NumberField(json, "device");
  const nlohmann::json* const options = Field(json, "options");
  if (!source || !mountpoint || !mountpoint->starts_with('/') || !space || !device ||
      options == nullptr || !options->is_object()) {
    return Malformed();
  }
  request.source = *source;
  request.mountpoint = *mountpoint;
  request.mount_namespace = static_cast<uint64_t>(*space);
  request.device = static_cast<dev_t>(*device);
  for (const auto& [name, unused] : options->items()) {
    const auto value = decoded(TextField(*options, name.c_str()));
    if (!value) return Malformed();
    request.options[name] = *value;
  }
  return request;
}

Result<Options> OptionsOfAttach(const AttachRequest& request, const Options& node) {
  Options options;
  for (const OptionRow& row : OptionTable()) {
    const auto asked = request.options.find(std::string(row.name));
    if (row.kind == OptionKind::kNode && asked != request.options.end()) {
      TRY(CompareWithNode(row, asked->second, node));
    }
    if (row.kind != OptionKind::kMount) continue;
    std::string value = node.no_mount ? row.show(node) : "";
    if (asked != request.options.end()) value = asked->second;
    if (value.empty()) continue;
    if (Status set = row.set(options, value); !set) {
      return std::move(set).error().WithContext(std::string(row.name));
    }
  }
  for (const auto& [name, unused] : request.options) {
    if (FindOption(name) == nullptr) {
      return MakeError(Code::kUnsupported, "the node does not know the option " +
                                               EscapeForeign(name, 64) +
                                               ": it is of another version of dartfs; restart it");
    }
  }
  options.source = request.source;
  options.mountpoint = request.mountpoint;
  return options;
}

}  // namespace dartfs::app
