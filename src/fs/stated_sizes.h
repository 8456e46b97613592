// StatedSizes: which sizes of a listing or a catalogue may be believed: all, until the origin has
// said another one of the file. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "core/base/mutex.h"
#include "core/engine/engine.h"
#include "fs/namespace.h"

namespace dartfs::fs {

class StatedSizes {
 public:
  // `url` as text.
  bool Believed(std::string_view url, uint64_t size) const EXCLUDES(mu_);
  // The origin, just asked, says another one. False: that was known.
  bool Disbelieve(std::string_view url, uint64_t size) EXCLUDES(mu_);
  // They are stated anew.
  void Forget() EXCLUDES(mu_);

 private:
  mutable core::Mutex mu_;                              // leaf
  std::unordered_set<uint64_t> wrong_ GUARDED_BY(mu_);  // hashes; bounded
};

// Whether the engine holds the file with another size than promised: one of the two is out of date,
// and only the origin can tell which.
bool Contradicts(core::Engine& engine, const core::Url& url, std::string_view digest,
                 const std::optional<Promise>& promise);

}  // namespace dartfs::fs
