// What is kept of an origin's answer beside the facts the engine works by: fields that a client of
// the HTTP door shall see on cached answers too, and whether a shared cache may store it
// (CLIENTS.md). Pure.
#pragma once

#include <vector>

#include "core/io/http_client.h"

namespace dartfs::core {

struct AnswerFields {
  // Content-Disposition, Cache-Control, Expires, Last-Modified, Docker-Content-Digest,
  // X-Repo-Commit, X-Linked-Etag, X-Linked-Size, those that were there, as sent and in this order:
  // at most 1 KiB each and 4 KiB in all, without control bytes.
  std::vector<HttpHeader> headers;
  // False: with Set-Cookie, Cache-Control no-store or private, or a Vary beyond Accept-Encoding.
  // Changes nothing in the engine, whose clients are one trust domain.
  bool shared_cacheable = true;

  bool operator==(const AnswerFields&) const = default;
};

inline constexpr size_t kMaxKeptFieldBytes = 1024;
inline constexpr size_t kMaxKeptBytes = 4096;

// Of the answer, and of the redirects that led to it what it does not say itself.
AnswerFields ReadAnswerFields(const HttpHead& head);

// After a 304: what it says replaces what was known, the rest stays (RFC 9111 section 3.2). It can
// only take away that a shared cache may store the object, since it need not repeat why not.
AnswerFields Refreshed(AnswerFields known, const AnswerFields& not_modified);

}  // namespace dartfs::core
