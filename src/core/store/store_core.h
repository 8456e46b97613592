// StoreCore: the parts of a store that its workers share. Each part synchronises itself; what is
// constant is so from Store::Open on. Operations under way hold a reference, so that a completion
// that comes late finds what it needs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>

#include "core/store/bypass.h"
#include "core/store/byte_budget.h"
#include "core/store/departure.h"
#include "core/store/frequency_sketch.h"
#include "core/store/index.h"
#include "core/store/layout.h"
#include "core/store/name_cache.h"
#include "core/store/object_table.h"
#include "core/store/op_gate.h"
#include "core/store/open_files.h"
#include "core/store/space.h"
#include "core/store/use_clock.h"

namespace dartfs::core {

struct StoreCounters {
  std::atomic<uint64_t> blocks = 0;
  std::atomic<uint64_t> pending_blocks = 0;
  std::atomic<uint64_t> evicted_blocks = 0;
  std::atomic<uint64_t> not_admitted_blocks = 0;
  std::atomic<uint64_t> corrupt_granules = 0;
  std::atomic<uint64_t> corrupt_records = 0;  // beside those that the index itself counts
  std::atomic<uint64_t> write_errors = 0;
  std::atomic<uint64_t> reported_drops = 0;
};

// Never 0.
uint64_t FrequencyHash(const StoreKey& key, uint64_t chunk);

struct StoreCore {
  StoreCore(StoreOptions store_options, DiskIo& disk_io, Clock& store_clock,
            std::unique_ptr<Layout> the_layout)
      : options(std::move(store_options)),
        geometry(options.grid),
        io(disk_io),
        clock(store_clock),
        use_clock(store_clock),
        layout(std::move(the_layout)),
        table(geometry),
        space(options.limit_bytes),
        lent(options.limit_bytes / 2),
        pins(options.limit_bytes / 4 * 3),
        frequencies(CountThings()),
        bypass(options.bypass_retry),
        files(*layout, options.open_files) {}

  // Chunks, most of them small objects', that the cache may hold.
  size_t CountThings() const {
    constexpr uint64_t kBlocksPerThing = 4;
    const uint64_t things = options.limit_bytes / (kBlocksPerThing * options.grid.block_size);
    return static_cast<size_t>(std::clamp<uint64_t>(things, 1 << 10, 1 << 18));
  }
  // Runs `done` on a DiskIo thread: for outcomes that are known on the caller's stack.
  void Answer(IoDone done, Status status);
  // Free bytes beyond the reserve, as of now, into `space`.
  void MeasureDisk();
  std::shared_ptr<LentFile> MakeLentFile(const StoredObject& object);
  // Of blocks that were taken for eviction.
  Departure MakeDeparture(const std::shared_ptr<StoredObject>& object,
                          std::vector<uint64_t> blocks);
  // The file's name is gone: its bytes are given back, those under loans with the last of them.
  void ReleaseUnlinked(const std::shared_ptr<LentFile>& lent_file, uint64_t bytes);

  const StoreOptions options;
  const Geometry geometry;
  DiskIo& io;
  Clock& clock;
  UseClock use_clock;
  const std::unique_ptr<Layout> layout;
  std::unique_ptr<Index> index;
  ObjectTable table;
  Space space;
  ByteBudget lent;                        // files under loans
  ByteBudget pins;                        // objects that the operator has pinned
  FrequencySketch frequencies;            // of chunks, by FrequencyHash
  std::atomic<uint64_t> next_victim = 0;  // FrequencyHash of what is evicted next; 0: unknown
  Bypass bypass;
  OpenFiles files;
  NameCache names;
  OpGate gate;  // who uses the index or has I/O under way is inside
  StoreCounters counters;
};

}  // namespace dartfs::core
