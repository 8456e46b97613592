// Namespace: which names a mount shows and which URLs they mean (DESIGN.md section 8). One
// implementation per kind of source argument (source.h): a remote directory, a catalogue, `any`.
// Knows nothing of FUSE, nodes or inode numbers.
//
// Thread-safe. Completions run exactly once, on an engine or transfer thread or, when nothing has
// to be waited for, on the caller's stack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/base/url.h"

namespace dartfs::core {
class Object;
}

namespace dartfs::fs {

// A directory as its namespace names it: made by a Namespace, opaque to others, comparable, and
// good over restarts (it can be written down).
struct DirRef {
  std::string key;
  bool operator==(const DirRef&) const = default;
};

enum class EntryKind : uint8_t { kFile, kDirectory };

// One name of a listing. Size only where the listing states exact bytes.
struct ListedEntry {
  std::string name;  // as shown: a legal file name, reversible (name_mapping.h)
  EntryKind kind = EntryKind::kFile;
  std::optional<uint64_t> size;
  std::optional<int64_t> mtime;  // seconds since the epoch
};

struct Listing {
  std::vector<ListedEntry> entries;  // sorted by name, unique
  bool complete = true;              // false: cut at the limit, or the origin has no listing here
};

// What a listing or a catalogue states of a file, so that its origin need not be asked until it is
// opened. Equal tags: nothing has been stated anew since.
struct Promise {
  uint64_t size = 0;  // bytes
  std::string tag;
  bool operator==(const Promise&) const = default;
};

// What a looked-up name is. A file carries its current version, or what is promised of it, or both.
struct Found {
  EntryKind kind = EntryKind::kFile;
  DirRef dir;                            // directories
  std::optional<core::Url> url;          // of the file, or of the directory where it has one
  std::shared_ptr<core::Object> object;  // files
  std::optional<Promise> promise;        // files; of the object's size, where there is an object
  std::optional<int64_t> mtime;
};

// What is known of a directory's listing, and what went wrong with it last (for `explain`).
struct ListingReport {
  std::shared_ptr<const Listing> listing;      // null when there is none
  std::shared_ptr<const core::Error> problem;  // of the last fetch; null when it went well
  int64_t problem_age_ms = -1;
};

using LookupDone = core::UniqueFunction<void(core::Result<Found>)>;
using ListDone = core::UniqueFunction<void(core::Result<std::shared_ptr<const Listing>>)>;

class Namespace {
 public:
  virtual ~Namespace() = default;
  virtual DirRef Root() const = 0;
  // kNotFound: there is no such name (the caller may remember that for a second).
  virtual void Lookup(const DirRef& dir, std::string_view name, core::TimePoint deadline,
                      LookupDone done) = 0;
  // As Lookup of a file that is about to be read: it is found with its current version, never a
  // promise alone.
  virtual void Open(const DirRef& dir, std::string_view name, core::TimePoint deadline,
                    LookupDone done) {
    Lookup(dir, name, deadline, std::move(done));
  }
  virtual void List(const DirRef& dir, core::TimePoint deadline, ListDone done) = 0;
  // Somebody looks at the entries of a directory just listed (`ls -l`): probe its files ahead, in
  // parallel, bounded. Returns at once.
  virtual void ProbeAhead(const DirRef& dir) = 0;
  // What is known of an entry of the directory's listing without asking anybody.
  virtual std::optional<Found> Known(const DirRef&, const ListedEntry&) { return std::nullopt; }
  // The URL that a name of a directory means, without asking anybody; files and directories alike.
  virtual core::Result<core::Url> UrlOf(const DirRef& dir, std::string_view name) const = 0;
  // The directory that a name means if it is one, without asking anybody (for `explain`).
  // kUnsupported where only an answer could tell.
  virtual core::Result<DirRef> DirOf(const DirRef& dir, std::string_view name) const = 0;

  // The digest that is stated for the name, as in core::OpenOptions; empty: none.
  virtual std::string DigestOf(const DirRef&, std::string_view) const { return {}; }
  // The root directory's URL, where it has one.
  virtual std::optional<core::Url> RootUrl() const { return std::nullopt; }
  // The directory of this mount that the URL means; nullopt for all other URLs.
  virtual std::optional<DirRef> DirOfUrl(const core::Url&) const { return std::nullopt; }
  // Asks nobody; reads the local disk.
  virtual ListingReport ExplainListing(const DirRef&) const { return {}; }
  // Takes the names anew from where they come from, if that is a file (a catalogue): all of them at
  // once, or on an error none. Reads the local disk.
  virtual core::Status Reload() { return {}; }
  // Cancels what is under way (who waits gets kCancelled). Twice is fine.
  virtual void Stop() {}
};

}  // namespace dartfs::fs
