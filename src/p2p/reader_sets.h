// ReaderSets: the tracker's side of WIRE.md section 6: which nodes read a file now. Not
// thread-safe; time is an argument.
//
// A file's published set is frozen between ticks, so that all who ask within one build the same
// tree. Everything is bounded: files, leases of a file, their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "p2p/string_hash.h"

namespace dartfs::p2p {

struct ReaderSetOptions {
  core::Duration tick = std::chrono::seconds(3);
  core::Duration max_lease = std::chrono::minutes(10);
  core::Duration forget_after = std::chrono::seconds(60);  // without a lease and without a call
  size_t max_files = 65536;
  size_t max_leases = 16384;  // of one file
  size_t max_readers = 512;   // published; a larger set is answered with an empty one
};

struct ReaderSet {
  uint64_t epoch = 0;                                       // grows when the set changes
  std::shared_ptr<const std::vector<std::string>> readers;  // sorted; never null
  core::Duration lease{};                                   // granted
};

class ReaderSets {
 public:
  explicit ReaderSets(ReaderSetOptions options) : options_(options) {}

  // `lease_ms` as it stands in the request: 0 or less asks for the default, two ticks.
  // kInvalidArgument: an empty file or no member ID. kBusy: a table is full.
  core::Result<ReaderSet> Join(std::string_view file, std::string_view node, int64_t lease_ms,
                               core::TimePoint now);
  // Of what is unknown: nothing.
  void Leave(std::string_view file, std::string_view node, core::TimePoint now);
  // Forgets what may be forgotten. About once a tick.
  void Sweep(core::TimePoint now);

  size_t files() const { return files_.size(); }

 private:
  struct File {
    std::map<std::string, core::TimePoint, std::less<>> leases;  // until
    std::shared_ptr<const std::vector<std::string>> published;
    uint64_t epoch = 0;
    core::TimePoint published_at{};
    core::TimePoint touched{};
  };

  core::Duration LeaseOf(int64_t lease_ms) const;
  void Publish(File& file, core::TimePoint now) const;

  const ReaderSetOptions options_;
  StringMap<File> files_;
};

}  // namespace dartfs::p2p
