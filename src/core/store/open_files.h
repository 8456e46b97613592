// OpenFiles: opens objects' files and keeps a limited number of them open, the recently used ones.
// Local disk only. Thread-safe; no lock is held while a file is opened.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "core/base/mutex.h"
#include "core/store/layout.h"
#include "core/store/stored_object.h"

namespace dartfs::core {

class OpenFiles {
 public:
  // At most a third of the descriptors that the process may have stay open.
  OpenFiles(const Layout& layout, size_t limit);

  // kNotFound: the file is gone. kStale: the object has been dropped meanwhile.
  Result<std::shared_ptr<ObjectFile>> ForRead(const std::shared_ptr<StoredObject>& object);
  // Made where it is absent.
  Result<std::shared_ptr<ObjectFile>> ForWrite(const std::shared_ptr<StoredObject>& object);

 private:
  Result<std::shared_ptr<ObjectFile>> Current(const std::shared_ptr<StoredObject>& object,
                                              bool for_write);
  // False: the object has another file by now.
  bool Keep(const std::shared_ptr<StoredObject>& object, std::shared_ptr<ObjectFile> file,
            uint64_t number) EXCLUDES(mu_);

  const Layout& layout_;
  const size_t limit_;
  Mutex mu_;  // a leaf
  // In the order of their opening; who was used since the hand last passed gets another round.
  std::deque<std::weak_ptr<StoredObject>> clock_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
