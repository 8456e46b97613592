// RegistryMirror: what the node's options make of the registry mirror.
#pragma once

#include <memory>

#include "app/node_core.h"
#include "app/options.h"
#include "core/base/result.h"
#include "httpd/registry_handler.h"
#include "httpd/registry_tokens.h"

namespace dartfs::app {

struct RegistryMirror {
  // nullptr: the options name no registry. Reads the file of logins; what is odd about it is
  // logged.
  static core::Result<std::unique_ptr<RegistryMirror>> Make(const Options& options, NodeCore& core);
  // The file of logins, anew.
  core::Status Reload(const Options& options);

  RegistryMirror(NodeCore& core, httpd::RegistryLogins logins,
                 httpd::RegistryTokensOptions token_options,
                 httpd::RegistryHandlerOptions handler_options);

  httpd::RegistryTokens tokens;
  httpd::RegistryHandler handler;
};

}  // namespace dartfs::app
