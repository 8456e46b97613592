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

// The ninth field of proc(5)'s stat. The name before it may hold anything, so count from its end.
bool IsExiting(std::string_view proc_stat) {
  constexpr uint64_t kPfExiting = 0x4;
  constexpr size_t kFlagsAfterName = 7;
  const size_t name_end = proc_stat.rfind(')');
  if (name_end == std::string_view::npos) return false;
  const auto fields = core::Split(proc_stat.substr(name_end + 1), ' ');
  if (fields.size() <= kFlagsAfterName) return false;
  return (core::ParseUint(fields[kFlagsAfterName]).value_or(0) & kPfExiting) != 0;
}

// Empty when there is no such file.
std::string ReadProc(pid_t tid, const char* name) {
  const std::string path = "/proc/" + std::to_string(tid) + "/" + name;
  const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::array<char, 4096> text;  // about 1.5 KiB in fact
  const ssize_t got = read(fd.get(), text.data(), text.size());
  return got <= 0 ? std::string() : std::string(text.data(), static_cast<size_t>(got));
}

}  // namespace

CallerState CallerStateOf(std::string_view proc_status, std::string_view proc_stat) {
  bool seen = false;
  for (const std::string_view line : core::Split(proc_status, '\n')) {
    for (const std::string_view field : {"SigPnd:", "ShdPnd:"}) {
      if (!line.starts_with(field)) continue;
      seen = true;
      if (HasSigKill(core::TrimAscii(line.substr(field.size())))) return CallerState::kDying;
    }
  }
  if (seen && IsExiting(proc_stat)) return CallerState::kDying;
  return seen ? CallerState::kAlive : CallerState::kUnseen;
}

CallerState LookAtCaller(pid_t tid) {
  if (tid <= 0) return CallerState::kUnseen;
  return CallerStateOf(ReadProc(tid, "status"), ReadProc(tid, "stat"));
}

}  // namespace dartfs::fs
