// What `explain` is asked about: a URL as it is, or a path made absolute without touching a mount
// of the node, which may hang.
#pragma once

#include <string>
#include <vector>

namespace dartfs::ctl {

bool IsUrl(const std::string& target);

// Absolute, with symbolic links followed up to the first of `mountpoints`; nothing at or below one
// is looked at. What can't be looked at stays as it is.
std::string ResolveUpToMount(const std::string& path, const std::vector<std::string>& mountpoints);

}  // namespace dartfs::ctl
