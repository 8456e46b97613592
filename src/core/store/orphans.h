// Orphans: after a start, what the index does not know of is freed in the background: files of no
// object, and, after a stop that was not clean, places of blocks that were written but not
// recorded. Life cycle: the thread runs from the constructor until it is through, or Stop.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/base/mutex.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class Orphans {
 public:
  Orphans(std::shared_ptr<StoreCore> core, bool check_places);
  ~Orphans() { Stop(); }
  // Joins. Twice is fine.
  void Stop();

 private:
  void Run();
  void VisitDirectory(const std::string& name);
  void VisitFile(const std::string& path, const std::string& hex);
  void FreePlaces(const std::string& path, const StoreKey& key,
                  const std::shared_ptr<StoredObject>& object);

  const std::shared_ptr<StoreCore> core_;
  const bool check_places_;
  std::atomic<bool> stopping_ = false;
  Mutex stop_mu_;  // held for the whole of Stop
  std::thread thread_ GUARDED_BY(stop_mu_);
};

}  // namespace dartfs::core
