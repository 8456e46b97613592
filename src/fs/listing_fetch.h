// ListingFetch: asks an origin for one directory's listing. Usually one GET of the directory's URL;
// for an object store ListObjectsV2 requests, page by page, at the bucket's URL:
//  - a plain GET that is answered by a ListBucketResult makes the directory the bucket;
//  - a refusal in the form of an S3 error document makes it look for the bucket at "/"
//  (virtual-host
//    style) and at the first path segment (path style): it is where the prefix asked for comes
//    back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/scheduler.h"
#include "core/base/url.h"
#include "core/io/http_client.h"
#include "fs/dir_listing.h"

namespace dartfs::fs {

struct ListingRequest {
  core::Url directory;  // its path ends in '/'
  std::string authorization;
  DirListing::Validators validators;  // of the listing that is known
  std::optional<std::string> bucket;  // path of the bucket's URL, where known
  bool find_bucket = true;            // look for it where that is not known
  core::TimePoint deadline = core::kNoDeadline;
};

struct FetchedListing {
  enum class Kind : uint8_t {
    kListing,
    kNotModified,
    kNone,          // something else is there: names can only be looked up
    kAbsent,        // 404, 410
    kUnauthorized,  // 401, 407
    kForbidden,     // 403, and any other refusal
  };
  Kind kind = Kind::kNone;
  std::vector<NamedChild> children;
  bool complete = false;
  DirListing::Validators validators;
  std::optional<std::string> bucket;  // where it is in an object store
  bool looked_for_bucket = false;
  core::Error problem;  // of the last four kinds: why there is no listing, for people
};

// Errors: the origin can't be reached or fails (429, 5xx), what HttpClient refuses, or kBadResponse
// for pages that go in a circle.
using ListingFetched = core::UniqueFunction<void(core::Result<FetchedListing>)>;

class ListingFetch {
 public:
  // `done` runs once, on `worker`, which also parses (up to kMaxListingBytes at a time).
  static std::shared_ptr<ListingFetch> Start(core::HttpClient& http, core::Scheduler& worker,
                                             ListingRequest request, ListingFetched done);
  virtual ~ListingFetch() = default;
  // `done` soon gets kCancelled, unless the fetch is over.
  virtual void Cancel() = 0;
};

}  // namespace dartfs::fs
