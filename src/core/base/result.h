// Result<T>: a value or an Error, with std::expected's member names. No exceptions in src.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/base/check.h"

namespace dartfs::core {

struct HttpHead;  // core/io/http_client.h

// What went wrong, in the terms on which callers decide. errno values are made of it only in
// fs/errno_map, HTTP status only in httpd/status_map.
enum class Code {
  kInvalidArgument,      // the caller's input can't be meant
  kNotFound,             // the origin said 404, or the name does not exist
  kGone,                 // the origin said 410
  kUnauthorized,         // the origin said 401
  kForbidden,            // the origin said 403
  kTooManyRequests,      // the origin said 429 or 503 until we gave up
  kUnavailable,          // unreachable, reset, 5xx: a later try may work
  kDeadlineExceeded,     // the caller's deadline passed
  kStale,                // the object has another version now
  kRangeBlind,           // the origin answers 200 to ranged requests for this object
  kRangeNotSatisfiable,  // the start of a range lies beyond the object
  kBadResponse,          // the origin or peer answered something that must not be believed
  kCorrupt,              // stored bytes do not match their checksum
  kIo,                   // local input or output failed; see sys_errno
  kNoSpace,              // the cache can't take more; never a reader's error
  kTooLarge,             // above a configured limit
  kBusy,                 // a bounded queue or table is full
  kRefused,              // by policy: address, scheme, redirect
  kCancelled,            // by the caller
  kUnsupported,
  kIsDirectory,  // the URL redirects to itself plus "/"
  kRedirected,   // the origin answered with a redirect that was not to be followed
  kInternal,
};

// A short fixed word for logs and JSON ("not_found").
const char* CodeName(Code code);

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  int sys_errno = 0;            // 0 where there is none
  std::string context;          // for people: what, to which URL (redacted), why; escaped already
  int http_status = 0;          // the origin's status where one caused this, else 0
  int64_t retry_after_ms = -1;  // what Retry-After asked for, -1 where absent
  // The WWW-Authenticate of an origin's 401: its fields as sent, joined by ", ", at most 4 KiB of
  // bytes that may stand in a header. Empty where there was none.
  std::string challenge;
  std::shared_ptr<const HttpHead> answer;  // of kRedirected: the redirect, else null

  std::string ToString() const;
  Error WithContext(const std::string& prefix) && {
    context = prefix + ": " + context;
    return std::move(*this);
  }
};

Error MakeError(Code code, std::string context);
// kIo (kNoSpace for ENOSPC, EDQUOT) with strerror's text appended to `context`.
Error ErrnoError(int sys_errno, std::string context);

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return Get(); }
  const T& value() const& { return const_cast<Result*>(this)->Get(); }
  T&& value() && { return std::move(Get()); }
  T& operator*() & { return Get(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Get(); }
  T&& operator*() && { return std::move(Get()); }
  T* operator->() { return &Get(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Get(); }
  const Error& error() const& {
    DARTFS_CHECK(!has_value());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    DARTFS_CHECK(!has_value());
    return std::move(*std::get_if<1>(&state_));
  }
  T value_or(T other) const& { return has_value() ? value() : std::move(other); }

 private:
  T& Get() {
    DARTFS_CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  void value() const { DARTFS_CHECK(has_value()); }
  const Error& error() const& {
    DARTFS_CHECK(failed_);
    return error_;
  }
  Error&& error() && {
    DARTFS_CHECK(failed_);
    return std::move(error_);
  }

 private:
  bool failed_ = false;
  Error error_;
};

using Status = Result<void>;

}  // namespace dartfs::core

#define DARTFS_CONCAT_(a, b) a##b
#define DARTFS_CONCAT(a, b) DARTFS_CONCAT_(a, b)

// TRY(expr): returns the error of a Result-valued expression from the enclosing function.
#define TRY(expression)                                                  \
  do {                                                                   \
    auto try_result_ = (expression);                                     \
    if (!try_result_.has_value()) return std::move(try_result_).error(); \
  } while (0)

// TRY_ASSIGN(auto x, expr): the same, binding the value.
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_(DARTFS_CONCAT(try_assign_, __LINE__), declaration, expression)
#define TRY_ASSIGN_(temporary, declaration, expression)            \
  auto temporary = (expression);                                   \
  if (!temporary.has_value()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()
