#include "httpd/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/unique_fd.h"

namespace dartfs::httpd {
namespace {

AccessRecord Record() {
  AccessRecord record;
  record.unix_ms = 1704067205007;
  record.client = "127.0.0.1:50312";
  record.method = "GET";
  record.target = "/dart/http://h/a.img";
  record.status = 206;
  record.sent = 4096;
  record.complete = true;
  record.took = std::chrono::microseconds(1250);
  record.sent_by[static_cast<size_t>(BytesFrom::kHit)] = 4096;
  return record;
}

TEST(AccessLine, OfARequest) {
  EXPECT_EQ(FormatAccessLine(Record()),
            "2024-01-01T00:00:05.007Z 127.0.0.1:50312 GET /dart/http://h/a.img 206 4096 cache=4096 "
            "1.250 -\n");
}

TEST(AccessLine, BytesBySource) {
  AccessRecord record = Record();
  record.sent_by = {4096, 0, 0, 0, 0};
  EXPECT_NE(FormatAccessLine(record).find(" 4096 - 1.250"), std::string::npos) << "the node's own";
  record.sent_by = {1, 2, 3, 4, 5};
  EXPECT_NE(FormatAccessLine(record).find(" 4096 cache=2,origin=3,peer=4,relay=5 1.250"),
            std::string::npos);
}

TEST(AccessLine, AnAnswerThatWasCutAndATraceSaySo) {
  AccessRecord record = Record();
  record.complete = false;
  record.note.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  EXPECT_TRUE(FormatAccessLine(record).ends_with(" 4bf92f3577b34da6a3ce929d0e0e4736 cut\n"));
}

// Whatever a client sends stays one line of nine or ten fields, without what must not be known.
TEST(AccessLine, TargetsOfAllKinds) {
  struct Row {
    const char* name;
    std::string target;
    std::string field;
  };
  const Row rows[] = {
      {"none", "", "-"},
      {"query", "/dart/https://h/a?X-Amz-Signature=secret", "/dart/https://h/a"},
      {"own query", "/admin/ring?key=7", "/admin/ring"},
      {"login", "/dart/https://user:secret@h/a", "/dart/https://h/a"},
      {"absolute", "http://user:secret@h/a?secret", "http://h/a"},
      {"space", "/a b", "/a\\x20b"},
      {"line break", "/a\r\n2024-01-01T00:00:00Z 6.6.6.6 GET /forged",
       "/a\\x0d\\x0a2024-01-01T00:00:00Z\\x206.6.6.6\\x20GET\\x20/forged"},
      {"escape sequence", "/\x1b[2J", "/\\x1b[2J"},
      {"backslash", "/a\\x20b", "/a\\\\x20b"},
      {"bytes", "/\xff\xc3\xa4", "/\\xff\\xc3\\xa4"},
      {"NUL", std::string("/a\0b", 4), "/a\\x00b"},
      {"fragment", "/a#secret", "/a"},
  };
  for (const Row& row : rows) {
    AccessRecord record = Record();
    record.target = row.target;
    const std::string line = FormatAccessLine(record);
    EXPECT_EQ(line, "2024-01-01T00:00:05.007Z 127.0.0.1:50312 GET " + row.field +
                        " 206 4096 cache=4096 1.250 -\n")
        << row.name;
    EXPECT_EQ(line.find("secret"), std::string::npos) << row.name;
  }
}

TEST(AccessLine, IsBounded) {
  const std::string method(1 << 20, 'M');
  const std::string client(1 << 20, '\xff');
  const std::string target = "/" + std::string(1 << 20, '\x01');
  AccessRecord record = Record();
  record.method = method;
  record.client = client;
  record.target = target;
  EXPECT_LT(FormatAccessLine(record).size(), 4096u);
}

TEST(AccessLine, OddNumbers) {
  AccessRecord record = Record();
  record.method = "";
  record.client = "";
  record.took = core::Duration(-5);
  record.unix_ms = INT64_MAX;
  record.sent = UINT64_MAX;
  EXPECT_EQ(FormatAccessLine(record),
            "292278994-08-17T07:12:55.807Z - - /dart/http://h/a.img 206 18446744073709551615 "
            "cache=4096 0.000 -\n");
}

TEST(TraceId, OfAField) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string good = "00-" + trace + "-00f067aa0ba902b7-01";
  struct Row {
    const char* name;
    std::string field;
    bool ok;
  };
  const Row rows[] = {
      {"good", good, true},
      {"not sampled", "00-" + trace + "-00f067aa0ba902b7-00", true},
      {"later version", "cc-" + trace + "-00f067aa0ba902b7-01", true},
      {"later version that goes on", "cc-" + trace + "-00f067aa0ba902b7-01-what", true},
      {"none", "", false},
      {"this version goes on", good + "-what", false},
      {"later version, no dash", "cc-" + trace + "-00f067aa0ba902b7-01what", false},
      {"forbidden version", "ff-" + trace + "-00f067aa0ba902b7-01", false},
      {"upper case", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false},
      {"zero", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
      {"zero parent", "00-" + trace + "-0000000000000000-01", false},
      {"short", good.substr(0, good.size() - 1), false},
      {"no dashes", "00 " + trace + " 00f067aa0ba902b7 01", false},
      {"two fields", good + ", " + good, false},
      {"line break", "00-4bf92f3577b34da6a3ce929d0e0e47\r\n-00f067aa0ba902b7-01", false},
  };
  for (const Row& row : rows) EXPECT_EQ(TraceIdOf(row.field), row.ok ? trace : "") << row.name;
}

class AccessLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = (std::filesystem::temp_directory_path() / "dartfs-access-XXXXXX").string();
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    path_ = dir_ + "/access.log";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<AccessLog> Open(size_t pending_bytes = 1 << 20) {
    auto log = AccessLog::Open({.path = path_, .pending_bytes = pending_bytes});
    EXPECT_TRUE(log) << log.error().ToString();
    return std::move(*log);
  }
  static std::string Contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static size_t Lines(const std::string& path) {
    const std::string text = Contents(path);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static void AwaitLines(const std::string& path, size_t lines) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (Lines(path) < lines && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(Lines(path), lines) << path;
  }

  std::string dir_;
  std::string path_;
};

TEST_F(AccessLogTest, LinesOfAllThreadsAreThereOnceItEnds) {
  constexpr size_t kThreads = 4;
  constexpr size_t kEach = 500;
  {
    auto log = Open();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (size_t j = 0; j < kEach; ++j) log->Add(Record());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(log->dropped(), 0u);
  }
  std::string all;
  for (size_t i = 0; i < kThreads * kEach; ++i) all += FormatAccessLine(Record());
  EXPECT_EQ(Contents(path_), all);
}

TEST_F(AccessLogTest, GoesOnWhereTheLastRunEnded) {
  Open()->Add(Record());
  Open()->Add(Record());
  EXPECT_EQ(Lines(path_), 2u);
}

TEST_F(AccessLogTest, RotationLosesNothing) {
  auto log = Open();
  log->Add(Record());
  AwaitLines(path_, 1);
  std::filesystem::rename(path_, path_ + ".1");
  log->Add(Record());
  log->Reopen();
  // Once the new file is there, lines go to it.
  while (!std::filesystem::exists(path_)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  log->Add(Record());
  log.reset();
  EXPECT_EQ(Lines(path_ + ".1"), 2u);
  EXPECT_EQ(Lines(path_), 1u);
}

TEST_F(AccessLogTest, ARotationThatFailsWritesTheOldFileOn) {
  auto log = Open();
  std::filesystem::rename(path_, path_ + ".1");
  std::filesystem::create_directory(path_);
  log->Reopen();
  log->Add(Record());
  log.reset();
  EXPECT_EQ(Lines(path_ + ".1"), 1u);
}

TEST_F(AccessLogTest, WhatHasNoRoomIsCountedNotWaitedFor) {
  auto log = Open(/*pending_bytes=*/10);
  log->Add(Record());
  log->Add(Record());
  EXPECT_EQ(log->dropped(), 2u);
  log.reset();
  EXPECT_EQ(Lines(path_), 0u);
}

// A pipe whose reader sleeps: full after 64 KiB. What does not fit is dropped, and what comes later
// begins with a line of its own.
TEST_F(AccessLogTest, AFullPipeDropsLinesAndIsWrittenOnAfterwards) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  core::UniqueFd reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  auto log = Open();
  constexpr int kLines = 4000;
  for (int i = 0; i < kLines; ++i) log->Add(Record());
  while (log->dropped() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::string got;
  const auto drain = [&] {
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(reader.get(), buffer, sizeof buffer)) > 0) {
      got.append(buffer, static_cast<size_t>(n));
    }
  };
  // Until nothing of what waited comes any more: else the last line would find the pipe full again.
  for (int quiet = 0; quiet < 10; ++quiet) {
    const size_t before = got.size();
    drain();
    if (got.size() != before) quiet = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  log->Add(Record());
  log.reset();
  drain();
  const std::string line = FormatAccessLine(Record());
  EXPECT_TRUE(got.ends_with("\n" + line)) << got.substr(got.size() - 2 * line.size());
}

TEST_F(AccessLogTest, AFileThatCantBeOpenedIsAnError) {
  path_ = dir_ + "/no/such/access.log";
  const auto log = AccessLog::Open({.path = path_});
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().context.find("access log"), std::string::npos);
  EXPECT_FALSE(AccessLog::Open({}));
}

TEST_F(AccessLogTest, APipeWithoutAReaderIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(AccessLog::Open({.path = path_}));
}

}  // namespace
}  // namespace dartfs::httpd
