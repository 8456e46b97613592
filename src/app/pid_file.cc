#include "app/pid_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "core/base/text.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {
namespace {

using core::Status;

constexpr std::string_view kComm = "dartfs";  // the program's name in /proc/PID/comm

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

Status CheckPidFile(const std::string& path) {
  if (path.empty()) return {};
  const auto pid = core::ParseUint(core::TrimAscii(FirstLine(path)));
  if (!pid || *pid == static_cast<uint64_t>(getpid())) return {};
  if (FirstLine("/proc/" + std::to_string(*pid) + "/comm") != kComm) return {};
  return core::MakeError(core::Code::kBusy, "PID file " + core::EscapeForeign(path) +
                                                ": belongs to the dartfs that runs as process " +
                                                std::to_string(*pid) +
                                                "; give this one another file");
}

PidFile::~PidFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

Status PidFile::Write(const std::string& path) {
  if (path.empty()) return {};
  TRY(CheckPidFile(path));
  const core::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const std::string text = std::to_string(getpid()) + "\n";
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) < 0) {
    return core::ErrnoError(errno, "PID file " + core::EscapeForeign(path));
  }
  path_ = path;
  return {};
}

}  // namespace dartfs::app
