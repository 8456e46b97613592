// RequesterMemo: the requesters of targets that have lately been asked for without a credential, so
// that a URL is not parsed anew for each range of it. Any thread; does not block.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/engine/engine.h"
#include "httpd/door.h"

namespace dartfs::httpd {

class RequesterMemo {
 public:
  // What Put has been given for them; null: nothing, or not any more.
  std::shared_ptr<const core::Requester> Find(Door door, std::string_view target) EXCLUDES(mu_);
  void Put(Door door, std::string_view target, std::shared_ptr<const core::Requester> requester)
      EXCLUDES(mu_);

 private:
  core::Mutex mu_;  // leaf
  std::unordered_map<std::string, std::shared_ptr<const core::Requester>> known_ GUARDED_BY(mu_);
};

}  // namespace dartfs::httpd
