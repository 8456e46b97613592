// How the origin behaves towards everybody, faults aside: latency, rate, validators, indexes.
#pragma once

#include <cstdint>
#include <string>

namespace dartfs::origin {

enum class IndexFormat { kNginx, kApache, kPython, kJson, kS3, kNone };
enum class EtagMode { kStrong, kWeak, kNone };
// What `bytes=0-0` of an empty object gets: 416 with "bytes */0", 200 with length 0 (as nginx), or
// 416 without Content-Range.
enum class EmptyRange { k416, k200, k416Bare };

struct Behaviour {
  std::uint64_t delay_ms = 0;          // before the head of each answer: the round trip
  std::uint64_t connect_delay_ms = 0;  // more of it for the first answer of a connection
  std::uint64_t rate = 0;              // body bytes a second for each connection; 0: no limit
  IndexFormat index = IndexFormat::kNginx;
  EtagMode etag = EtagMode::kStrong;
  bool last_modified = true;
  bool accept_ranges = true;  // false: the header is left out, ranges still work
  bool keep_alive = true;     // false: every answer says Connection: close
  EmptyRange empty_range = EmptyRange::k416;
};

// Names as on the command line and in the control endpoints; nullptr or false when unknown.
const char* NameOf(IndexFormat format);
const char* NameOf(EtagMode mode);
const char* NameOf(EmptyRange mode);
bool ParseName(const std::string& name, IndexFormat& format);
bool ParseName(const std::string& name, EtagMode& mode);
bool ParseName(const std::string& name, EmptyRange& mode);

}  // namespace dartfs::origin
