// What the mirror answers of its own: errors in the registries' JSON form. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "httpd/exchange.h"
#include "httpd/registry_path.h"

namespace dartfs::httpd {

// {"errors":[{"code":...,"message":...}]} with that status.
TextAnswer RegistryFaultAnswer(int status, std::string_view code, std::string_view message);

// ErrorAnswer's status and fields, and the challenge of a 401; the code is the one for that status
// on that route.
TextAnswer RegistryErrorAnswer(const core::Error& error, RegistryRoute route);

// 405 of a method that would write.
TextAnswer RegistryReadOnlyAnswer();

void RespondWith(ExchangePtr exchange, TextAnswer answer);

}  // namespace dartfs::httpd
