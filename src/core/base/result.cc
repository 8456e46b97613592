#include "core/base/result.h"

#include <cerrno>
#include <system_error>

namespace dartfs::core {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kNotFound:
      return "not_found";
    case Code::kGone:
      return "gone";
    case Code::kUnauthorized:
      return "unauthorized";
    case Code::kForbidden:
      return "forbidden";
    case Code::kTooManyRequests:
      return "too_many_requests";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kStale:
      return "stale";
    case Code::kRangeBlind:
      return "range_blind";
    case Code::kRangeNotSatisfiable:
      return "range_not_satisfiable";
    case Code::kBadResponse:
      return "bad_response";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kIo:
      return "io";
    case Code::kNoSpace:
      return "no_space";
    case Code::kTooLarge:
      return "too_large";
    case Code::kBusy:
      return "busy";
    case Code::kRefused:
      return "refused";
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kIsDirectory:
      return "is_directory";
    case Code::kRedirected:
      return "redirected";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

std::string Error::ToString() const {
  std::string text = CodeName(code);
  if (!context.empty()) text += ": " + context;
  return text;
}

Error MakeError(Code code, std::string context) {
  Error error;
  error.code = code;
  error.context = std::move(context);
  return error;
}

Error ErrnoError(int sys_errno, std::string context) {
  const bool full = sys_errno == ENOSPC || sys_errno == EDQUOT;
  Error error = MakeError(full ? Code::kNoSpace : Code::kIo, std::move(context));
  error.sys_errno = sys_errno;
  if (!error.context.empty()) error.context += ": ";
  error.context += std::generic_category().message(sys_errno);
  return error;
}

}  // namespace dartfs::core
