// The memory limit that the control group sets for this process, of either version of cgroups.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dartfs::app {

// The text of a file, nullopt when it can't be read.
using FileReader = std::function<std::optional<std::string>(const std::string& path)>;

// At most 64 KiB of a local file.
std::optional<std::string> ReadSmallFile(const std::string& path);

// Bytes; the lowest limit of the group and those it lies in. nullopt: none, or not to be found out.
// In a container that sees only its own part of the tree, the limit at the tree's root counts.
std::optional<uint64_t> CgroupMemoryLimit(const FileReader& read);

}  // namespace dartfs::app
