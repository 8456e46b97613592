// Requests on their way out: what may be asked, and how a redirect changes it. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/url.h"
#include "core/io/http_client.h"

namespace dartfs::core {

// 301, 302, 303, 307, 308: all mean "ask there" to a client that only does GET and HEAD.
bool IsRedirect(int status);

// One request of a call: the first, or what a redirect made of it.
struct HttpHop {
  Url url;
  std::vector<HttpHeader> headers;
  std::string authorization;
  std::string user_agent;  // as HttpRequest's, cut
  bool head = false;       // HEAD, not GET
};

// kInvalidArgument for a URL that ParseUrl refuses or that carries a login (it belongs into
// `authorization`), for other methods than GET and HEAD, and for header names and values that could
// not stand in a request.
Result<HttpHop> FirstHop(const HttpRequest& request);

// The request that `head`, a redirect seen for `from`, asks for. Towards another authority (scheme,
// host, port) Authorization is dropped and of the headers only those stay that describe the request
// itself (Range, conditions, Accept, Via, ...): all others may be somebody's credentials. What was
// dropped stays dropped, also when a later redirect leads back.
// kBadResponse: no Location, several unlike ones, one that is no http or https URL, or with a login
// in it. kRefused: from https to http, or to another scheme.
Result<HttpHop> FollowRedirect(HttpHop from, const HttpHead& head);

// Notes in `kept` what `redirect` says of the object: X-Repo-Commit, X-Linked-Etag, X-Linked-Size
// of at most 1 KiB each. What a later redirect says replaces what an earlier one said.
void NoteRedirect(const HttpHead& redirect, std::vector<HttpHeader>* kept);

}  // namespace dartfs::core
