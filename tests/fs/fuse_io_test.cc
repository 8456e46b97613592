#include "fs/fuse_io.h"

#define FUSE_USE_VERSION 312
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/unique_fd.h"
#include "fs/fuse_passthrough.h"

namespace dartfs::fs {
namespace {

struct Reply {
  fuse_out_header header{};
  fuse_init_out body{};
  std::array<iovec, 2> Pieces() {
    return {iovec{&header, sizeof header}, iovec{&body, sizeof body}};
  }
};

TEST(FuseIo, AddsFlagsToTheReplyToInit) {
  Reply reply;
  reply.body.flags = FUSE_ASYNC_READ;
  const auto pieces = reply.Pieces();
  EXPECT_TRUE(CompleteInitReply(pieces.data(), 2, {FUSE_PARALLEL_DIROPS}));
  EXPECT_EQ(reply.body.flags, uint32_t{FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS});
}

TEST(FuseIo, LeavesOtherRepliesAlone) {
  Reply refused;
  refused.header.error = -71;
  auto pieces = refused.Pieces();
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 2, {FUSE_PARALLEL_DIROPS}));
  Reply shorter;
  pieces = shorter.Pieces();
  pieces[1].iov_len = sizeof(fuse_attr_out);
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 2, {FUSE_PARALLEL_DIROPS}));
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 1, {FUSE_PARALLEL_DIROPS}));
  EXPECT_EQ(refused.body.flags + shorter.body.flags, 0u);
}

TEST(FuseIo, PassthroughGoesIntoTheSecondWordWithItsStackDepth) {
  Reply reply;
  const auto pieces = reply.Pieces();
  EXPECT_TRUE(CompleteInitReply(pieces.data(), 2, {kInitExt | kInitPassthrough, kMaxStackDepth}));
  EXPECT_EQ(reply.body.flags, uint32_t{1} << 30);
  EXPECT_EQ(reply.body.flags2, uint32_t{1} << 5);
  // struct fuse_init_out of protocol 7.40: max_stack_depth is the word at byte 36.
  uint32_t depth = 0;
  std::memcpy(&depth, reinterpret_cast<const char*>(&reply.body) + 36, sizeof depth);
  EXPECT_EQ(depth, 1u);
}

struct Request {
  fuse_in_header header{};
  fuse_init_in body{};
};

TEST(FuseIo, ReadsWhatTheKernelOffers) {
  Request request;
  request.header.opcode = FUSE_INIT;
  request.body.flags = FUSE_ASYNC_READ | FUSE_INIT_EXT;
  request.body.flags2 = uint32_t{1} << 5;
  EXPECT_EQ(OfferOfInit(&request, sizeof request)->flags,
            uint64_t{FUSE_ASYNC_READ | FUSE_INIT_EXT} | kInitPassthrough);
}

TEST(FuseIo, AnOlderKernelsSecondWordIsNotBelieved) {
  Request request;
  request.header.opcode = FUSE_INIT;
  request.body.flags = FUSE_ASYNC_READ;
  request.body.flags2 = uint32_t{1} << 5;
  EXPECT_EQ(OfferOfInit(&request, sizeof request)->flags, uint64_t{FUSE_ASYNC_READ});
  request.body.flags |= FUSE_INIT_EXT;
  constexpr size_t kFirstWordOnly = sizeof(fuse_in_header) + offsetof(fuse_init_in, flags2);
  EXPECT_EQ(OfferOfInit(&request, kFirstWordOnly)->flags,
            uint64_t{FUSE_ASYNC_READ | FUSE_INIT_EXT});
  EXPECT_FALSE(OfferOfInit(&request, kFirstWordOnly - 1));
}

TEST(FuseIo, OtherRequestsOfferNothing) {
  Request request;
  request.header.opcode = FUSE_LOOKUP;
  request.body.flags = FUSE_ASYNC_READ;
  EXPECT_FALSE(OfferOfInit(&request, sizeof request));
  EXPECT_FALSE(OfferOfInit(&request, 3));
}

// What waits for INIT may ask the kernel at once for what INIT agrees on.
TEST(FuseIo, InitIsAnsweredOnlyOnceTheKernelHasTheReply) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
  const core::UniqueFd from(ends[0]);
  const core::UniqueFd to(ends[1]);
  const std::array<char, 4096> filling{};
  while (write(to.get(), filling.data(), filling.size()) > 0) {
  }
  ASSERT_EQ(fcntl(to.get(), F_SETFL, 0), 0);

  InitState init;
  Reply reply;
  auto pieces = reply.Pieces();
  std::thread writer(
      [&] { WriteReply(to.get(), pieces.data(), static_cast<int>(pieces.size()), init); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(init.answered.load());
  std::array<char, 1 << 17> drained{};
  while (read(from.get(), drained.data(), drained.size()) > 0) {
  }
  writer.join();
  EXPECT_TRUE(init.answered.load());
}

// What libfuse answers to messages that nobody but the test sends.
class LoneSession {
 public:
  LoneSession() {
    std::array<char*, 1> argv = {const_cast<char*>("test")};
    fuse_args args = FUSE_ARGS_INIT(1, argv.data());
    const fuse_lowlevel_ops ops{};
    session_ = fuse_session_new(&args, &ops, sizeof ops, this);
    fuse_opt_free_args(&args);
    fuse_custom_io io{};
    io.writev = [](int, iovec* pieces, int count, void* self) -> ssize_t {
      static_cast<LoneSession*>(self)->replies.push_back(
          *static_cast<const fuse_out_header*>(pieces[0].iov_base));
      ssize_t bytes = 0;
      for (int i = 0; i < count; ++i) bytes += static_cast<ssize_t>(pieces[i].iov_len);
      return bytes;
    };
    io.read = [](int, void*, size_t, void*) -> ssize_t { return -1; };
    EXPECT_EQ(fuse_session_custom_io(session_, &io, open("/dev/null", O_RDWR | O_CLOEXEC)), 0);
    fuse_init_in init{};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = FUSE_KERNEL_MINOR_VERSION;
    Send(FUSE_INIT, 1, init);
    EXPECT_EQ(replies.size(), 1U);
    replies.clear();
  }
  ~LoneSession() { fuse_session_destroy(session_); }

  template <typename Body>
  void Send(uint32_t opcode, uint64_t unique, const Body& body) {
    struct {
      fuse_in_header header;
      Body body;
    } message{};
    message.header.len = sizeof message;
    message.header.opcode = opcode;
    message.header.unique = unique;
    message.body = body;
    fuse_buf buffer{};
    buffer.size = sizeof message;
    buffer.mem = &message;
    fuse_session_process_buf(session_, &buffer);
  }
  fuse_session* get() { return session_; }

  std::vector<fuse_out_header> replies;

 private:
  fuse_session* session_ = nullptr;
};

TEST(FuseIo, InterruptsThatComeTooLateAreFreed) {
  LoneSession session;
  for (uint64_t late = 1; late <= 3; ++late) {
    fuse_interrupt_in interrupt{};
    interrupt.unique = 100 + late;  // which has been answered
    session.Send(FUSE_INTERRUPT, 200 + late, interrupt);
  }
  ASSERT_TRUE(session.replies.empty()) << "they are kept";
  DropLateInterrupts(session.get(), 5);
  ASSERT_EQ(session.replies.size(), 3U) << "and nothing else is answered";
  for (const fuse_out_header& reply : session.replies) EXPECT_EQ(reply.error, -EAGAIN);
}

}  // namespace
}  // namespace dartfs::fs
