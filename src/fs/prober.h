// Prober: opens many files that somebody is about to look at, in parallel and bounded; what
// comes of it the engine keeps. Part of the namespaces. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/url.h"
#include "core/engine/engine.h"

namespace dartfs::fs {

struct ProbeTarget {
  core::Url url;
  std::string digest;  // as in core::OpenOptions
};

class Prober {
 public:
  static constexpr size_t kLooksAtOnce = 4096;  // entries, until other tasks have a turn

  // Of entry `index`, below `count`; nullopt: nothing to ask for it. Called once for each, in
  // order, until enough have been opened.
  using TargetOf = std::function<std::optional<ProbeTarget>(size_t index)>;

  // The engine outlives it. `options` of every open; their deadline and digest are set here.
  Prober(core::Engine& engine, core::OpenOptions options);
  ~Prober();

  // Whether a run would be taken now: some are under way at most.
  bool HasRoom() const;
  // Returns at once: what is left after some entries is for the engine's scheduler.
  void Start(size_t count, TargetOf target_of);
  // Nothing more is opened. Twice is fine.
  void Stop();

 private:
  struct State;
  class Run;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::fs
