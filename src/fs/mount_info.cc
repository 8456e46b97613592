#include "fs/mount_info.h"

#include <fstream>
#include <iterator>

#include "core/base/text.h"

namespace dartfs::fs {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// \040 and the like (proc(5)).
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && IsOctal(text[i + 1]) && IsOctal(text[i + 2]) &&
        IsOctal(text[i + 3])) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// 36 35 98:0 /root /mountpoint options optional... - type source super-options
std::optional<MountedFs> ParseLine(std::string_view line) {
  const auto fields = core::Split(line, ' ');
  size_t dash = 6;
  while (dash < fields.size() && fields[dash] != "-") ++dash;
  if (dash + 2 >= fields.size()) return std::nullopt;
  const auto device = core::Split(fields[2], ':');
  if (device.size() != 2) return std::nullopt;
  const auto major = core::ParseUint(device[0]);
  const auto minor = core::ParseUint(device[1]);
  if (!major || !minor) return std::nullopt;
  MountedFs mount;
  mount.major = static_cast<unsigned>(*major);
  mount.minor = static_cast<unsigned>(*minor);
  mount.mountpoint = Unescape(fields[4]);
  mount.type = Unescape(fields[dash + 1]);
  mount.source = Unescape(fields[dash + 2]);
  return mount;
}

}  // namespace

std::vector<MountedFs> ParseMountInfo(std::string_view text) {
  std::vector<MountedFs> mounts;
  for (const std::string_view line : core::Split(text, '\n')) {
    if (auto mount = ParseLine(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

std::vector<MountedFs> ReadMountInfo() {
  std::ifstream file("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseMountInfo(text);
}

std::optional<MountedFs> TopMountAt(const std::vector<MountedFs>& mounts,
                                    std::string_view mountpoint) {
  for (auto it = mounts.rbegin(); it != mounts.rend(); ++it) {
    if (it->mountpoint == mountpoint) return *it;
  }
  return std::nullopt;
}

}  // namespace dartfs::fs
