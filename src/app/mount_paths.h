// From a path on a mount to the URL it means, by names alone: nothing is looked up through the
// kernel, so that it answers also while the mount hangs or the origin is gone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/url.h"
#include "fs/namespace.h"

namespace dartfs::app {

// The components of `path` below `mountpoint`, both absolute; empty for the mountpoint itself;
// nullopt when it lies elsewhere. "." and ".." are worked out as text.
std::optional<std::vector<std::string>> PathBelow(std::string_view mountpoint,
                                                  std::string_view path);

// `components` is not empty. kNotFound, kInvalidArgument: no such name can be.
core::Result<core::Url> UrlOfPath(const fs::Namespace& names,
                                  const std::vector<std::string>& components);

// The digest that the mount states for it (a catalogue's line); empty: none.
std::string DigestOfPath(const fs::Namespace& names, const std::vector<std::string>& components);

// The directory that `components` name, if it is one; none: the root. Errors as above, and
// kNotFound for what is known to be a file.
core::Result<fs::DirRef> DirOfPath(const fs::Namespace& names,
                                   std::span<const std::string> components);

}  // namespace dartfs::app
