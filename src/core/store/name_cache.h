// NameCache: names put or deleted and not yet durable, so that they read back at once. Bounded:
// what does not fit is not remembered, which costs a question to the origin later. Thread-safe, no
// I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/index.h"

namespace dartfs::core {

class NameCache {
 public:
  static constexpr size_t kMaxValueBytes = size_t{16} << 20;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // False: refused, too large or too many are waiting; an older value may show again.
  bool Put(NameTable table, std::string_view name, std::optional<std::string> value) EXCLUDES(mu_);
  struct Found {
    bool known = false;                // false: ask the index
    std::optional<std::string> value;  // nullopt: deleted
  };
  Found Get(NameTable table, std::string_view name) EXCLUDES(mu_);
  bool empty() EXCLUDES(mu_);

  // What waits, for a commit; it goes on being found until one of the two below.
  std::vector<IndexBatch::Name> Take() EXCLUDES(mu_);
  void Committed() EXCLUDES(mu_);
  // They wait again, behind what was put meanwhile.
  void Failed() EXCLUDES(mu_);
  // Forgets all that waits.
  void Clear() EXCLUDES(mu_);

 private:
  struct Entry {
    std::optional<std::string> value;
    bool taken = false;
  };
  static std::string KeyOf(NameTable table, std::string_view name);
  static uint64_t BytesOf(const std::string& key, const Entry& entry);

  Mutex mu_;  // a leaf
  std::unordered_map<std::string, Entry> entries_ GUARDED_BY(mu_);
  uint64_t bytes_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::core
