// DirListings: the listings of one mount's directories, of one origin or of many, in memory and in
// the index; fetched once for all who ask, again after their time to live, and served stale while
// the origin can't be reached.
//
// Directories are named by the keys of a UrlSpace; all keys given are such.
// Thread-safe. Completions run on the worker, a timer's thread, or the caller's stack.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/base/url.h"
#include "core/engine/engine.h"
#include "fs/dir_listing.h"
#include "fs/url_space.h"

namespace dartfs::fs {

struct DirListingsOptions {
  UrlSpace space;
  std::string authorization;
  core::Duration ttl = std::chrono::seconds(60);             // of a listing, jittered by 20 %
  core::Duration absent_ttl = std::chrono::seconds(1);       // of "no such directory"
  core::Duration unreachable_ttl = std::chrono::seconds(5);  // stale listings served meanwhile
  core::Duration fetch_timeout = std::chrono::seconds(60);   // of one listing, all its pages
  size_t memory_bytes = size_t{256} << 20;                   // all listings kept, about
};

// What is known of a directory without asking.
struct KnownDir {
  std::shared_ptr<const DirListing> listing;  // null when there is none
  bool fresh = false;
};

// What the origin says of a directory's URL.
enum class DirPresence : uint8_t { kPresent, kAbsent, kUnauthorized, kForbidden };
struct GotDir {
  std::shared_ptr<const DirListing>
      listing;  // never null; empty, not complete: no listing to be had
  DirPresence presence = DirPresence::kPresent;
  bool fresh = false;  // false: the origin can't be reached, this is what was known
  std::shared_ptr<const core::Error> problem;  // why there is no listing; null when there is one
};

using GotDirDone = core::UniqueFunction<void(core::Result<GotDir>)>;

class DirListings {
 public:
  // Engine and worker outlive what is under way: Stop first. `worker` may block on the local disk
  // and take as long as parsing a listing does.
  DirListings(DirListingsOptions options, core::Engine& engine, core::Scheduler& worker,
              core::Random& random);
  ~DirListings();

  core::Url UrlOf(std::string_view dir) const;

  // In memory, else in the index (reads the local disk).
  KnownDir Known(const std::string& key);

  // The listing, fetched when it is not fresh. Errors: kDeadlineExceeded, kUnavailable and the
  // like, and what HttpClient refuses, when there is no listing to fall back on; kCancelled after
  // Stop.
  void Get(const std::string& key, core::TimePoint deadline, GotDirDone done);

  // A directory that no listing names, found by looking it up: known for the time to live without
  // asking, and in the index for when the origin is gone.
  void RememberDirectory(const std::string& key);
  bool IsRememberedDirectory(const std::string& key);  // within the time to live; no I/O
  bool WasDirectory(const std::string& key);           // ever; reads the index

  // Somebody found the directory's origin out of reach.
  void NoteUnreachable(std::string_view key);

  // True once for each listing in memory that is fresh: its entries may be probed ahead.
  std::shared_ptr<const DirListing> TakeForProbing(const std::string& key);

  // Logs why somebody who lists the directory finds nothing: once per directory and cause, some a
  // minute.
  void WarnOfNoListing(const std::string& key, const core::Error& problem);

  // What is known in memory and in the index (reads the local disk).
  ListingReport Explain(const std::string& key);

  // Cancels fetches, answers everyone. Twice is fine.
  void Stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// That the origin may be back later: what was known is served meanwhile.
bool MeansUnreachable(const core::Error& error);

}  // namespace dartfs::fs
