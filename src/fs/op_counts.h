// How many requests of each kind a mount has answered. Relaxed counters.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dartfs::fs {

enum class Op : uint8_t {
  kLookup,
  kForget,
  kGetAttr,
  kOpen,
  kRead,          // answered on the spot
  kReadDeferred,  // had to wait for the disk or the network
  kFlush,
  kRelease,
  kOpenDir,
  kReadDir,
  kReadDirPlus,
  kReleaseDir,
  kXattr,
  kStatFs,
  kInterrupt,
  kRefusedWrite,
};
inline constexpr size_t kOps = static_cast<size_t>(Op::kRefusedWrite) + 1;

// A short fixed word for status and metrics ("lookup").
constexpr const char* OpName(Op op) {
  constexpr std::array<const char*, kOps> kNames = {
      "lookup", "forget",  "getattr",   "open",         "read",        "read_deferred",
      "flush",  "release", "opendir",   "readdir",      "readdirplus", "releasedir",
      "xattr",  "statfs",  "interrupt", "refused_write"};
  return kNames[static_cast<size_t>(op)];
}

class OpCounts {
 public:
  void Count(Op op) { counts_[static_cast<size_t>(op)].fetch_add(1, std::memory_order_relaxed); }
  uint64_t Get(Op op) const {
    return counts_[static_cast<size_t>(op)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, kOps> counts_{};
};

}  // namespace dartfs::fs
