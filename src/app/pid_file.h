// The file of --pid-file. Used by the main thread.
#pragma once

#include <string>

#include "core/base/result.h"

namespace dartfs::app {

// kBusy: the file names another dartfs that runs. Changes nothing; an empty path is fine.
core::Status CheckPidFile(const std::string& path);

// Removed with the object.
class PidFile {
 public:
  PidFile() = default;
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  ~PidFile();

  // Checked as by CheckPidFile. An empty path: no file.
  core::Status Write(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dartfs::app
