// The kernel's table of mounts (/proc/self/mountinfo).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dartfs::fs {

struct MountedFs {
  unsigned major = 0, minor = 0;
  std::string mountpoint;  // raw bytes
  std::string type;        // "fuse.dartfs"
  std::string source;      // raw bytes
  bool operator==(const MountedFs&) const = default;
};

// Lines that can't be understood are left out. Pure.
std::vector<MountedFs> ParseMountInfo(std::string_view text);

// Touches no mount, so it can't hang on a dead one.
std::vector<MountedFs> ReadMountInfo();

// What one sees at `mountpoint`: the last one mounted there.
std::optional<MountedFs> TopMountAt(const std::vector<MountedFs>& mounts,
                                    std::string_view mountpoint);

}  // namespace dartfs::fs
