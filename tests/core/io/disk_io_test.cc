#include "core/io/disk_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/unique_fd.h"
#include "core/io/disk_op.h"
#include "fake/faulty_disk_io.h"

namespace dartfs::core {
namespace {

constexpr auto kLong = std::chrono::seconds(20);

std::vector<std::byte> Pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 131 + seed) >> 3);
  return data;
}

UniqueFd TempFile(int flags = 0) {
  char path[] = "/var/tmp/disk_io_test.XXXXXX";
  UniqueFd fd(::mkstemp(path));
  EXPECT_TRUE(fd.valid());
  if (flags != 0) fd.Reset(::open(path, O_RDWR | O_CLOEXEC | flags));
  ::unlink(path);
  return fd;
}

// A call whose outcome the test waits for.
Status Await(const std::function<void(IoDone)>& start) {
  auto promise = std::make_shared<std::promise<Status>>();
  auto future = promise->get_future();
  start([promise](Status status) { promise->set_value(std::move(status)); });
  if (future.wait_for(kLong) != std::future_status::ready) {
    return MakeError(Code::kDeadlineExceeded, "no completion");
  }
  return future.get();
}

class DiskIoTest : public ::testing::TestWithParam<DiskIoOptions::Backend> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    if (GetParam() == DiskIoOptions::Backend::kUring) {
      GTEST_SKIP() << "the thread sanitizer does not see what the kernel orders";
    }
#endif
    Make({.backend = GetParam()});
  }
  void Make(DiskIoOptions options) {
    auto io = MakeDiskIo(options);
    ASSERT_TRUE(io) << io.error().ToString();
    io_ = *std::move(io);
  }
  Status Read(int fd, std::span<std::byte> into, uint64_t offset) {
    return Await([&](IoDone done) { io_->Read(fd, into, offset, std::move(done)); });
  }
  Status Write(int fd, std::span<const std::byte> from, uint64_t offset) {
    return Await([&](IoDone done) { io_->Write(fd, from, offset, std::move(done)); });
  }
  Status Sync(int fd) {
    return Await([&](IoDone done) { io_->Sync(fd, std::move(done)); });
  }
  std::unique_ptr<DiskIo> io_;
};

TEST_P(DiskIoTest, ReadsBackWhatItWrote) {
  const UniqueFd fd = TempFile();
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{100'000}, size_t{5} << 20}) {
    const auto data = Pattern(bytes, static_cast<unsigned>(bytes));
    ASSERT_TRUE(Write(fd.get(), data, 12'345));
    ASSERT_TRUE(Sync(fd.get()));
    std::vector<std::byte> back(bytes);
    ASSERT_TRUE(Read(fd.get(), back, 12'345));
    EXPECT_EQ(back, data) << bytes;
  }
}

TEST_P(DiskIoTest, AlignedBuffersGoThroughDirectDescriptors) {
  const UniqueFd fd = TempFile(O_DIRECT);
  if (!fd.valid()) GTEST_SKIP() << "no O_DIRECT on this file system";
  auto buffer = AlignedBuffer::Allocate(size_t{4} << 20);
  const auto data = Pattern(buffer.size(), 9);
  std::memcpy(buffer.data(), data.data(), data.size());
  ASSERT_TRUE(Write(fd.get(), buffer.span(), 8192));
  auto back = AlignedBuffer::Allocate(buffer.size());
  ASSERT_TRUE(Read(fd.get(), back.span(), 8192));
  EXPECT_EQ(std::memcmp(back.data(), data.data(), data.size()), 0);
}

TEST_P(DiskIoTest, ReadPastTheEndIsAShortRead) {
  const UniqueFd fd = TempFile();
  ASSERT_TRUE(Write(fd.get(), Pattern(1000, 1), 0));
  std::vector<std::byte> back(1001);
  const Status status = Read(fd.get(), back, 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().context.find("short read"), std::string::npos);
}

TEST_P(DiskIoTest, ErrorsCarryErrno) {
  std::vector<std::byte> data(10);
  const Status bad = Read(1'000'000, data, 0);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().sys_errno, EBADF);
  const UniqueFd full(::open("/dev/full", O_RDWR | O_CLOEXEC));
  const Status no_space = Write(full.get(), data, 0);
  ASSERT_FALSE(no_space);
  EXPECT_EQ(no_space.error().code, Code::kNoSpace);
}

TEST_P(DiskIoTest, ManyAtOnceEachCompleteOnce) {
  const UniqueFd fd = TempFile();
  constexpr size_t kCalls = 2000;
  constexpr size_t kBytes = 3000;
  const auto data = Pattern(kCalls * kBytes, 5);
  std::vector<std::atomic<int>> completions(kCalls);
  std::promise<void> all;
  std::atomic<size_t> left = kCalls;
  for (size_t i = 0; i < kCalls; ++i) {
    io_->Write(fd.get(), std::span(data).subspan(i * kBytes, kBytes), i * kBytes,
               [&, i](Status status) {
                 EXPECT_TRUE(status);
                 ++completions[i];
                 if (--left == 0) all.set_value();
               });
  }
  ASSERT_EQ(all.get_future().wait_for(kLong), std::future_status::ready);
  for (auto& count : completions) EXPECT_EQ(count, 1);
  std::vector<std::byte> back(data.size());
  ASSERT_TRUE(Read(fd.get(), back, 0));
  EXPECT_EQ(back, data);
}

TEST_P(DiskIoTest, CompletionsMayStartCalls) {
  const UniqueFd fd = TempFile();
  std::byte byte{7};
  std::promise<int> finished;
  std::function<void(int)> next = [&](int depth) {
    if (depth == 500) return finished.set_value(depth);
    io_->Write(fd.get(), {&byte, 1}, static_cast<uint64_t>(depth),
               [&, depth](Status) { next(depth + 1); });
  };
  next(0);
  auto future = finished.get_future();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
}

TEST_P(DiskIoTest, QueueBeyondItsLimitIsRefused) {
  Make({.backend = GetParam(), .ring_entries = 2, .pool_threads = 1, .queue_limit = 4});
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const UniqueFd read_end(pipe_fds[0]);
  UniqueFd write_end(pipe_fds[1]);
  const UniqueFd fd = TempFile();
  // The completion of one call holds the only completing thread until the queue has filled.
  std::promise<void> entered;
  std::promise<void> go_on;
  io_->Sync(fd.get(), [&](Status) {
    entered.set_value();
    go_on.get_future().wait_for(kLong);
  });
  ASSERT_EQ(entered.get_future().wait_for(kLong), std::future_status::ready);
  constexpr int kCalls = 20;
  std::atomic<int> busy = 0;
  std::atomic<int> fine = 0;
  std::atomic<int> left = kCalls;
  std::promise<void> all;
  for (int i = 0; i < kCalls; ++i) {
    io_->Sync(fd.get(), [&](Status status) {
      if (status) {
        ++fine;
      } else if (status.error().code == Code::kBusy) {
        ++busy;
      }
      if (--left == 0) all.set_value();
    });
  }
  EXPECT_EQ(left, kCalls);  // nothing completes on the caller's stack
  go_on.set_value();
  ASSERT_EQ(all.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(fine, 4);
  EXPECT_EQ(busy, kCalls - 4);
}

TEST_P(DiskIoTest, StopAnswersEveryCall) {
  const UniqueFd fd = TempFile();
  const auto data = Pattern(1 << 20, 3);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 300; ++i) {
    io_->Write(fd.get(), data, static_cast<uint64_t>(i) << 20, [&](Status) { ++answered; });
  }
  io_->Stop();
  EXPECT_EQ(answered, 300);
  io_->Stop();
  const Status late = Write(fd.get(), data, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kCancelled);
}

TEST_P(DiskIoTest, LeavesNoDescriptorsBehind) {
  auto count = [] {
    int open_fds = 0;
    for (int fd = 0; fd < 1024; ++fd) open_fds += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open_fds;
  };
  io_.reset();
  const int before = count();
  for (int i = 0; i < 3; ++i) Make({.backend = GetParam()});
  io_.reset();
  EXPECT_EQ(count(), before);
}

TEST_P(DiskIoTest, FaultsShowAsTold) {
  const UniqueFd fd = TempFile();
  FaultyDiskIo faulty(*io_);
  const auto data = Pattern(8192, 1);
  auto write = [&](DiskFault fault) {
    faulty.SetChoose([fault](const DiskCall&) { return fault; });
    return Await([&](IoDone done) { faulty.Write(fd.get(), data, 0, std::move(done)); });
  };
  EXPECT_TRUE(write({.kind = DiskFault::Kind::kDrop}));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_END), 0);
  EXPECT_TRUE(write({.kind = DiskFault::Kind::kTear, .torn_bytes = 4096}));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_END), 4096);
  const Status failed = write({.kind = DiskFault::Kind::kFail, .sys_errno = ENOSPC});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kNoSpace);

  faulty.SetChoose([](const DiskCall&) { return DiskFault{.kind = DiskFault::Kind::kHold}; });
  std::promise<Status> promise;
  faulty.Write(fd.get(), data, 0, [&](Status status) { promise.set_value(std::move(status)); });
  auto future = promise.get_future();
  EXPECT_EQ(faulty.held(), 1U);
  EXPECT_EQ(future.wait_for(std::chrono::milliseconds(5)), std::future_status::timeout);
  faulty.Release();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(future.get());
}

INSTANTIATE_TEST_SUITE_P(Backends, DiskIoTest,
                         ::testing::Values(DiskIoOptions::Backend::kUring,
                                           DiskIoOptions::Backend::kPool),
                         [](const auto& param) {
                           return param.param == DiskIoOptions::Backend::kUring ? "uring" : "pool";
                         });

TEST(ReadIfCachedTest, FalseWithoutWaitingForTheDisk) {
  char path[] = "/var/tmp/disk_io_test.XXXXXX";
  const UniqueFd fd(::mkstemp(path));
  const UniqueFd cleanup(::open(path, O_RDONLY | O_CLOEXEC));
  ::unlink(path);
  const auto data = Pattern(1 << 20, 2);
  ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), 0), ssize_t{1} << 20);
  std::vector<std::byte> back(data.size());
  EXPECT_TRUE(ReadIfCached(fd.get(), back, 0));
  EXPECT_EQ(back, data);
  EXPECT_FALSE(ReadIfCached(fd.get(), back, 1));  // beyond the end
  ASSERT_EQ(::fdatasync(fd.get()), 0);
  ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_FALSE(ReadIfCached(fd.get(), back, 0));
}

TEST(DiskOpTest, TakesTheKernelsAnswers) {
  std::byte data[100];
  struct Case {
    const char* name;
    std::vector<int64_t> results;
    bool ends;
    bool fine;
  };
  const Case cases[] = {
      {"whole", {100}, true, true},
      {"in pieces", {1, 98, 1}, true, true},
      {"interrupted", {-EINTR, 50, -EAGAIN, 50}, true, true},
      {"unfinished", {99}, false, false},
      {"end of file", {99, 0}, true, false},
      {"failed half-way", {50, -EIO}, true, false},
  };
  for (const auto& c : cases) {
    DiskOp op = MakeReadOp(3, data, 7, nullptr);
    std::optional<Status> outcome;
    for (const int64_t result : c.results) outcome = op.Take(result);
    EXPECT_EQ(outcome.has_value(), c.ends) << c.name;
    if (outcome) {
      EXPECT_EQ(outcome->has_value(), c.fine) << c.name;
    }
  }
}

TEST(DiskOpTest, EndlessRetriesEnd) {
  std::byte data[1];
  DiskOp op = MakeReadOp(3, data, 0, nullptr);
  unsigned tries = 0;
  std::optional<Status> outcome;
  while (!outcome && tries < 1'000'000) {
    outcome = op.Take(-EAGAIN);
    ++tries;
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error().sys_errno, EAGAIN);
}

}  // namespace
}  // namespace dartfs::core
