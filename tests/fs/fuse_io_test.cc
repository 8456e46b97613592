#include "fs/fuse_io.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <array>

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
  EXPECT_TRUE(CompleteInitReply(pieces.data(), 2, FUSE_PARALLEL_DIROPS));
  EXPECT_EQ(reply.body.flags, uint32_t{FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS});
}

TEST(FuseIo, LeavesOtherRepliesAlone) {
  Reply refused;
  refused.header.error = -71;
  auto pieces = refused.Pieces();
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 2, FUSE_PARALLEL_DIROPS));
  Reply shorter;
  pieces = shorter.Pieces();
  pieces[1].iov_len = sizeof(fuse_attr_out);
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 2, FUSE_PARALLEL_DIROPS));
  EXPECT_FALSE(CompleteInitReply(pieces.data(), 1, FUSE_PARALLEL_DIROPS));
  EXPECT_EQ(refused.body.flags + shorter.body.flags, 0u);
}

}  // namespace
}  // namespace dartfs::fs
