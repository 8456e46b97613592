// What a store is opened with, and what it tells of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/grid.h"
#include "core/base/time.h"

namespace dartfs::core {

// Per chunk: whether this node is one of those that hold it for the cluster, or keeps it for its
// own readers beside (spec/engine.md 3.7).
enum class Placement : uint8_t { kOwned, kBorrowed };

struct WriteOptions {
  // For a peer, not for this node's own readers: once space is short, kept only if it is asked for
  // more often than what would have to go.
  bool relayed = false;
};

struct StoreStats {
  uint64_t limit_bytes = 0;
  uint64_t used_bytes = 0;  // bytes of present blocks
  uint64_t blocks = 0;
  uint64_t objects = 0;
  uint64_t commit_seq = 0;      // of the last durable commit; grows over restarts
  uint64_t pending_blocks = 0;  // present, not yet durable
  uint64_t owned_bytes = 0;     // these four: of present blocks, by placement
  uint64_t borrowed_bytes = 0;
  uint64_t owned_blocks = 0;
  uint64_t borrowed_blocks = 0;
  uint64_t owned_limit_bytes = 0;    // guaranteed to owned blocks; the rest of the limit to others
  uint64_t lent_bytes = 0;           // of files under loans
  uint64_t pinned_bytes = 0;         // of objects that the operator has pinned, whole
  uint64_t not_admitted_blocks = 0;  // relayed ones
  uint64_t evicted_blocks = 0;
  uint64_t corrupt_granules = 0;
  uint64_t corrupt_records = 0;
  uint64_t write_errors = 0;
  bool bypass = false;
  std::string bypass_reason;
  std::string disk_io;  // DiskIo::Describe
};

struct StoreOptions {
  std::string dir;
  uint64_t limit_bytes = uint64_t{10} << 30;
  Grid grid;
  Duration commit_interval = std::chrono::milliseconds(500);
  uint64_t commit_bytes = uint64_t{64} << 20;  // or after so many unsynced bytes
  Duration bypass_retry = std::chrono::seconds(5);
  // A write that the disk has not answered for so long means bypass, until all such have ended.
  Duration slow_write = std::chrono::seconds(5);
  // How long a first loan of a file waits for the disk.
  Duration lend_patience = std::chrono::seconds(1);
  // Smaller objects are not lent: a sync and a commit for each would cost more than it saves.
  uint64_t least_lent_bytes = uint64_t{1} << 20;
  // Of the limit, guaranteed to owned blocks; the rest to borrowed ones.
  double owned_fraction = 0.8;
  // Objects whose files stay open; idle ones are closed beyond this. A descriptor each, and a third
  // of the process's soft limit at most. Operations under way have some hundreds more.
  size_t open_files = 512;
  // Of the file system's bytes and inodes, left to others: below it the store evicts its own
  // blocks, then goes into bypass. 0: none. Not asked of file systems that do not tell their size.
  double reserve_fraction = 0.05;
  uint64_t index_map_bytes = uint64_t{64} << 30;  // virtual: how far the index may grow
};

}  // namespace dartfs::core
