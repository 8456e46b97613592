// SpoolSource: blocks of range-blind objects. The object is read once, whole, from its start; each
// block goes through a flight like any other, so it is stored, and seen by readers as it comes. A
// block that the pass has gone by already is served by the next pass.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/engine/flight_env.h"
#include "core/engine/source.h"

namespace dartfs::core {

class Spool;

class SpoolSource final : public BlockSource {
 public:
  // All outlive the source and its passes.
  SpoolSource(const EngineOptions& options, HttpClient& http, EngineCounters& counters,
              Scheduler& scheduler);
  ~SpoolSource() override;
  // kTooLarge (OnEnd) for an object above the spool limit.
  std::shared_ptr<BlockFetch> Fetch(BlockRequest request, std::shared_ptr<BlockSink> sink) override;
  const char* name() const override { return "spool"; }

 private:
  friend class Spool;
  const EngineOptions& options_;
  HttpClient& http_;
  EngineCounters& counters_;
  Scheduler& scheduler_;
  Mutex mu_;  // before Spool's
  std::unordered_map<const StoredObject*, std::weak_ptr<Spool>> spools_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
