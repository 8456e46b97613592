#include "httpd/status_map.h"

#include <ostream>  // before the next, which forgets it

#include <boost/beast/http/status.hpp>

namespace dartfs::httpd {

int StatusOf(core::Code code) {
  using core::Code;
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthorized:
      return 401;
    case Code::kForbidden:
    case Code::kRefused:
      return 403;
    case Code::kNotFound:
    case Code::kIsDirectory:
      return 404;
    case Code::kGone:
      return 410;
    case Code::kRangeNotSatisfiable:
      return 416;
    case Code::kTooManyRequests:
      return 429;
    case Code::kUnsupported:
      return 501;
    case Code::kUnavailable:
    case Code::kStale:
    case Code::kRangeBlind:
    case Code::kBadResponse:
    case Code::kCorrupt:
    case Code::kTooLarge:
    case Code::kRedirected:
      return 502;
    case Code::kBusy:
    case Code::kCancelled:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kIo:
    case Code::kNoSpace:
    case Code::kInternal:
      break;
  }
  return 500;
}

bool IsPassing(int status) { return status == 429 || status == 503; }

std::string_view ReasonOf(int status) {
  namespace http = boost::beast::http;
  const auto known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "";
  const auto reason = http::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

}  // namespace dartfs::httpd
