// ObjectVerifier: checks an object's granules against what the disk has, one block after another,
// with O_DIRECT reads where the file system has them, so that the page cache is left alone; else
// buffered, and what was read is given back to the kernel. One runs at a time, in the order in
// which they were asked for. Thread-safe; works on the caller's thread and waits there for its turn
// and for DiskIo.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "core/base/mutex.h"
#include "core/store/committer.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class ObjectVerifier {
 public:
  ObjectVerifier(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer)
      : core_(std::move(core)), committer_(std::move(committer)) {}

  // As Store::Verify.
  Result<VerifyReport> Verify(const std::shared_ptr<StoredObject>& object,
                              const std::function<bool()>& go_on) EXCLUDES(mu_);

 private:
  class Turn;

  // False: not waited for any longer.
  bool AwaitTurn(uint64_t number, const std::function<bool()>& go_on) EXCLUDES(mu_);
  void Leave(uint64_t number) EXCLUDES(mu_);

  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;

  Mutex mu_;  // a leaf
  CondVar left_;
  std::deque<uint64_t> turns_ GUARDED_BY(mu_);  // whose turn it is, then who waits
  uint64_t last_number_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::core
