#include "fs/errno_map.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace dartfs::fs {
namespace {

using core::Code;

TEST(ErrnoMap, EachCode) {
  const struct {
    Code code;
    int expected;
  } cases[] = {
      {Code::kNotFound, ENOENT},     {Code::kGone, ENOENT},
      {Code::kUnauthorized, EACCES}, {Code::kForbidden, EACCES},
      {Code::kRefused, EACCES},      {Code::kTooManyRequests, EIO},
      {Code::kUnavailable, EIO},     {Code::kDeadlineExceeded, ETIMEDOUT},
      {Code::kStale, ESTALE},        {Code::kBadResponse, EIO},
      {Code::kCorrupt, EIO},         {Code::kNoSpace, EIO},
      {Code::kTooLarge, EFBIG},      {Code::kBusy, EBUSY},
      {Code::kCancelled, EINTR},     {Code::kUnsupported, EOPNOTSUPP},
      {Code::kIsDirectory, EISDIR},  {Code::kInvalidArgument, EINVAL},
      {Code::kInternal, EIO},        {Code::kRedirected, EIO},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(ErrnoOf(core::MakeError(test.code, "x")), test.expected) << CodeName(test.code);
  }
}

TEST(ErrnoMap, TheSystemsErrnoOfTheCacheDiskIsNotTheReaders) {
  EXPECT_EQ(ErrnoOf(core::ErrnoError(ENOSPC, "cache")), EIO);
  EXPECT_EQ(ErrnoOf(core::ErrnoError(ENOENT, "cache")), EIO);
}

}  // namespace
}  // namespace dartfs::fs
