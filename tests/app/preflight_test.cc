#include "app/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/logging.h"

namespace dartfs::app {
namespace {

class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    std::filesystem::create_directories(dir_ + "/point");
    std::ofstream(dir_ + "/file") << "x";
    right_.cache_dir = dir_ + "/cache";
    right_.mountpoint = dir_ + "/point";
    right_.ca_file = dir_ + "/file";
    right_.log_file = dir_ + "/log";
    right_.pid_file = dir_ + "/pid";
  }
  ~PreflightTest() override { std::filesystem::remove_all(dir_); }

  const std::string dir_ = testing::TempDir() + "dartfs-preflight-" + std::to_string(getpid());
  Options right_;
};

TEST_F(PreflightTest, WhatIsThereIsRightAndNothingIsMade) {
  EXPECT_TRUE(CheckPlaces(right_));
  for (const char* name : {"/cache", "/log", "/pid"}) {
    EXPECT_FALSE(std::filesystem::exists(dir_ + name)) << name;
  }
}

TEST_F(PreflightTest, ACatalogueIsReadToItsLastLine) {
  right_.source = "catalog:" + dir_ + "/c.tsv";
  const auto check = [this](const std::string& text) {
    std::ofstream(dir_ + "/c.tsv") << text;
    const auto checked = CheckPlaces(right_);
    return checked ? "" : checked.error().context;
  };
  EXPECT_EQ(check("a\thttps://host.example/a\n"), "");
  EXPECT_THAT(check("a\thttps://host.example/a\nb\tnot-a-url\n"),
              testing::HasSubstr(dir_ + "/c.tsv:2: "));
  std::filesystem::remove(dir_ + "/c.tsv");
  EXPECT_THAT(CheckPlaces(right_).error().context, testing::HasSubstr(dir_ + "/c.tsv"));
}

TEST_F(PreflightTest, WhatIsNotThereIsSaid) {
  const std::pair<std::string Options::*, std::string> rows[] = {
      {&Options::ca_file, dir_ + "/absent"},
      {&Options::ca_file, dir_ + "/point"},
      {&Options::log_file, dir_ + "/absent/log"},
      {&Options::log_file, dir_ + "/point"},
      {&Options::pid_file, dir_ + "/absent/pid"},
      {&Options::pid_file, dir_ + "/file/pid"},
      {&Options::mountpoint, dir_ + "/absent"},
      {&Options::mountpoint, dir_ + "/file"},
      {&Options::mountpoint, "/"},
      {&Options::mountpoint, "/proc"},
      {&Options::cache_dir, dir_ + "/file"},
      {&Options::access_log, dir_ + "/absent/log"},
      {&Options::access_log, dir_ + "/point"},
      {&Options::registry_auth, dir_ + "/absent"},
      {&Options::registry_auth, dir_ + "/file"},  // no JSON
  };
  for (const auto& [field, value] : rows) {
    Options options = right_;
    options.*field = value;
    const auto checked = CheckPlaces(options);
    ASSERT_FALSE(checked) << value;
    EXPECT_THAT(checked.error().context, testing::HasSubstr(value));
  }
}

TEST_F(PreflightTest, ALogFileMakesNoDirectories) {
  right_.log_file = dir_ + "/absent/log";
  EXPECT_FALSE(SetUpLog(right_));
  EXPECT_FALSE(ReopenLog(right_));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/absent"));
}

}  // namespace
}  // namespace dartfs::app
