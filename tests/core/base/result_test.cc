#include "core/base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>

namespace dartfs::core {
namespace {

Result<std::unique_ptr<int>> Half(int value) {
  if (value % 2 != 0) return MakeError(Code::kInvalidArgument, "odd");
  return std::make_unique<int>(value / 2);
}

Result<int> Quarter(int value) {
  TRY_ASSIGN(const auto half, Half(value));
  TRY_ASSIGN(const auto quarter, Half(*half));
  return *quarter;
}

Status CheckQuarter(int value) {
  TRY(Quarter(value));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  auto good = Half(8);
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(**good, 4);
  const std::unique_ptr<int> owned = std::move(good).value();
  EXPECT_EQ(*owned, 4);

  const auto bad = Half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_EQ(bad.error().ToString(), "invalid_argument: odd");
}

TEST(Result, TryPassesTheFirstErrorOn) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).error().context, "odd");
  EXPECT_EQ(Quarter(5).value_or(-1), -1);
  EXPECT_TRUE(CheckQuarter(4).has_value());
  EXPECT_EQ(CheckQuarter(2).error().code, Code::kInvalidArgument);
}

TEST(Result, OfAnErrorLikeValueStaysApart) {
  const Result<std::string> text = std::string("fine");
  EXPECT_EQ(*text, "fine");
  EXPECT_EQ(text->size(), 4U);
}

TEST(ResultDeathTest, TakingWhatIsNotThereEndsTheProcess) {
  EXPECT_DEATH((void)Half(3).value(), "check failed: has_value");
  EXPECT_DEATH((void)Half(2).error(), "check failed");
  EXPECT_DEATH(Status().error(), "check failed: failed_");
}

TEST(Error, WithContextPutsThePlaceBefore) {
  const Error error = MakeError(Code::kNotFound, "no such object").WithContext("open");
  EXPECT_EQ(error.context, "open: no such object");
  EXPECT_EQ(error.code, Code::kNotFound);
}

TEST(Error, Errno) {
  struct Row {
    int sys_errno;
    Code code;
  };
  for (const Row& row : {Row{EIO, Code::kIo}, Row{ENOENT, Code::kIo}, Row{ENOSPC, Code::kNoSpace},
                         Row{EDQUOT, Code::kNoSpace}}) {
    const Error error = ErrnoError(row.sys_errno, "write /x");
    EXPECT_EQ(error.code, row.code);
    EXPECT_EQ(error.sys_errno, row.sys_errno);
    EXPECT_EQ(error.context, std::string("write /x: ") + std::strerror(row.sys_errno));
  }
  EXPECT_EQ(ErrnoError(EIO, "").context, std::strerror(EIO));
}

TEST(CodeName, EveryCodeHasItsOwnWord) {
  std::set<std::string> names;
  const int last = static_cast<int>(Code::kInternal);
  for (int code = 0; code <= last; ++code) {
    const std::string name = CodeName(static_cast<Code>(code));
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace dartfs::core
