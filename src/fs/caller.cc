#include "fs/caller.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <string>

#include "core/base/text.h"
#include "core/base/unique_fd.h"

namespace dartfs::fs {
namespace {

bool HasSigKill(std::string_view mask_hex) {
  uint64_t mask = 0;
  const auto parsed = std::from_chars(mask_hex.data(), mask_hex.data() + mask_hex.size(), mask, 16);
  return parsed.ec == std::errc() && (mask >> (SIGKILL - 1) & 1) != 0;
}

}  // namespace

CallerState CallerStateOf(std::string_view proc_status) {
  bool seen = false;
  for (const std::string_view line : core::Split(proc_status, '\n')) {
    for (const std::string_view field : {"SigPnd:", "ShdPnd:"}) {
      if (!line.starts_with(field)) continue;
      seen = true;
      if (HasSigKill(core::TrimAscii(line.substr(field.size())))) return CallerState::kDying;
    }
  }
  return seen ? CallerState::kAlive : CallerState::kUnseen;
}

CallerState LookAtCaller(pid_t tid) {
  if (tid <= 0) return CallerState::kUnseen;
  const std::string path = "/proc/" + std::to_string(tid) + "/status";
  const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return CallerState::kUnseen;
  std::array<char, 4096> text;  // about 1.5 KiB in fact
  const ssize_t got = read(fd.get(), text.data(), text.size());
  if (got <= 0) return CallerState::kUnseen;
  return CallerStateOf({text.data(), static_cast<size_t>(got)});
}

}  // namespace dartfs::fs
