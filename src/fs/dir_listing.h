// A directory's listing with all that lookups need, and its record in the index (NAMES.md, "What
// the index remembers"). Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/listing.h"
#include "fs/namespace.h"

namespace dartfs::fs {

// Immutable once made; shared.
class DirListing {
 public:
  struct Validators {
    std::string etag;           // as sent, empty when absent
    std::string last_modified;  // as sent, empty when absent
    bool operator==(const Validators&) const = default;
  };
  // `children` as NameChildren gives them.
  DirListing(std::vector<NamedChild> children, bool complete, Validators validators);

  const std::shared_ptr<const Listing>& shown() const { return shown_; }
  const Validators& validators() const { return validators_; }
  size_t size() const { return shown_->entries.size(); }
  size_t memory_bytes() const { return memory_bytes_; }  // about

  const ListedEntry* Find(std::string_view name) const;  // null: not listed
  // The segment of an entry that Find or shown() gave.
  std::string SegmentOf(const ListedEntry& entry) const;

 private:
  const Validators validators_;
  std::shared_ptr<const Listing> shown_;
  // By entry: its segment, empty where the name itself says it (NameToWire).
  std::vector<std::string> spellings_;
  size_t memory_bytes_ = sizeof(DirListing) + sizeof(Listing);
};

// `url` is the directory's, without a login.
std::string EncodeDirListing(const DirListing& listing, std::string_view url);
// nullptr for anything EncodeDirListing does not make, and for another URL.
std::shared_ptr<const DirListing> DecodeDirListing(std::string_view record, std::string_view url);

// That a name not in any listing is a directory.
std::string EncodeDirKind(std::string_view url);
bool DecodeDirKind(std::string_view record, std::string_view url);

// Keys of the records in the table `names`.
std::string DirListingKey(std::string_view url);
std::string DirKindKey(std::string_view url);

}  // namespace dartfs::fs
