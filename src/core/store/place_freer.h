// PlaceFreer: gives places in files back to the file system, once no record names them: holes for
// single blocks, the whole file where an object is gone or its file is lent. Blocking; the
// committer's thread alone.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/store/departure.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class PlaceFreer {
 public:
  explicit PlaceFreer(StoreCore& core) : core_(core) {}

  // What can't go yet (pinned, being rewritten, refused by the system) waits for later calls of
  // FreeWaiting, and its bytes count as used.
  void Free(std::vector<Departure> departures);
  void FreeWaiting();
  // An object without blocks: its file goes once nobody has it open.
  void NoteEmpty(const StoreKey& key) { empties_.push_back(key); }
  // Forgets what waits of the object; its bytes are given back.
  void Purge(const StoredObject* object);
  void UnlinkAndLeave(const StoreKey& key);
  // Whether places wait because the process lacks descriptors or memory: others would wait too.
  bool starved() const { return starved_; }
  // Objects whose lent file's name went since the last call: their records still say lent.
  std::vector<std::shared_ptr<StoredObject>> TakeReplaced() { return std::exchange(replaced_, {}); }
  bool has_leftovers() const { return !waiting_.empty() || !empties_.empty(); }

 private:
  void FreeOne(Departure departure);
  bool RemoveWhole(const Departure& departure);
  // The file goes, and the object is filled again through another: whoever has it open.
  void UnlinkLent(Departure departure);
  // True when the block is done with, its bytes given back.
  bool PunchBlock(Departure& departure, uint64_t block);
  // An error: nothing was freed. Gone, as the whole file is, counts as freed.
  Status PunchFile(const std::shared_ptr<StoredObject>& object, uint64_t block);
  void NoteRefusal(const Error& error, Departure* departure);
  void RemoveEmpties();

  StoreCore& core_;
  std::vector<Departure> waiting_;
  std::vector<StoreKey> empties_;
  std::vector<std::shared_ptr<StoredObject>> replaced_;
  bool starved_ = false;
};

}  // namespace dartfs::core
