// AttachRequest: what a process that has made a mount asks the node to serve it with (CONTROL.md,
// `attach`), and what the node makes of it. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/options.h"
#include "core/base/result.h"

namespace dartfs::app {

struct AttachRequest {
  std::string source;      // may hold a login
  std::string mountpoint;  // resolved
  // Those that were named, by name, as OptionRow::show has them; of lists all values.
  std::map<std::string, std::string> options = {};
  uint64_t mount_namespace = 0;  // of the asking process
  dev_t device = 0;              // st_dev of the mount; 0: not made yet
};

// Of options that are resolved; `mountpoint` is, too. The mount's owner is always named: it is who
// asks, where nothing else was.
AttachRequest MakeAttachRequest(const Invocation& invocation, const std::string& mountpoint);

nlohmann::json ToJson(const AttachRequest& request);
// kInvalidArgument.
core::Result<AttachRequest> AttachRequestFrom(const nlohmann::json& json);

// The options that the node serves the mount with. What is not named is as by default, of a node
// without a mount of its own as it was told itself. kRefused: an option of the node is named with
// another value than it runs with. kInvalidArgument: no such option, or a value that can't be.
core::Result<Options> OptionsOfAttach(const AttachRequest& request, const Options& node);

}  // namespace dartfs::app
