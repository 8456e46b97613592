// OriginSource: blocks by ranged GET from the object's own origin, each head checked (admission.h)
// before a byte is taken.
#pragma once

#include "core/engine/flight_env.h"
#include "core/engine/source.h"
#include "core/io/http_client.h"

namespace dartfs::core {

class OriginSource final : public BlockSource {
 public:
  // All outlive the source and its fetches.
  OriginSource(const EngineOptions& options, HttpClient& http, EngineCounters& counters)
      : options_(options), http_(http), counters_(counters) {}
  std::shared_ptr<BlockFetch> Fetch(BlockRequest request, std::shared_ptr<BlockSink> sink) override;
  const char* name() const override { return "origin"; }

 private:
  const EngineOptions& options_;
  HttpClient& http_;
  EngineCounters& counters_;
};

// A BlockFetch over one HttpCall.
class HttpBlockFetch final : public BlockFetch {
 public:
  explicit HttpBlockFetch(std::shared_ptr<HttpCall> call) : call_(std::move(call)) {}
  void Cancel() override { call_->Cancel(); }
  void Resume() override { call_->Resume(); }
  void Raise(Priority priority) override { call_->Raise(priority); }

 private:
  const std::shared_ptr<HttpCall> call_;
};

}  // namespace dartfs::core
