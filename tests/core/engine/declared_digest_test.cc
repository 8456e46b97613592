// A digest that the operator states for a URL (a catalogue's line): the object is content-addressed
// by it, and the URL without it stays an object of its own.
#include <gtest/gtest.h>

#include <thread>

#include "core/engine/object.h"
#include "engine_fixture.h"

namespace dartfs::core {
namespace {

class DeclaredDigestTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    bytes_ = Pattern(3 * kBlock + 321, 7);
    digest_ = "sha256:" + HexDigestOf("sha256", bytes_);
  }
  Result<std::shared_ptr<Object>> OpenDeclared(const std::string& path) {
    OpenOptions options;
    options.digest = digest_;
    return Open(path, options);
  }
  bool BecomesVerified(const std::string& path) {
    for (int i = 0; i < 1000; ++i) {
      const auto object = OpenDeclared(path);
      if (object && (*object)->verified()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::string bytes_, digest_;
};

TEST_F(DeclaredDigestTest, VerifiedAndNeverAskedForAgain) {
  origin().AddFile("/disk.img", bytes_);
  const auto object = *OpenDeclared("/disk.img");
  EXPECT_TRUE(object->facts().immutable);
  EXPECT_EQ(object->facts().identity.digest->ToString(), digest_);
  EXPECT_EQ(*ReadOn(*ReaderOf(object), 0, bytes_.size()), bytes_);
  EXPECT_TRUE(BecomesVerified("/disk.img"));
  EXPECT_TRUE(engine_->Explain(UrlOf("/disk.img"), digest_).object->verified());
  const auto cached = engine_->OpenCached(UrlOf("/disk.img"), digest_);
  ASSERT_TRUE(cached && *cached);
  EXPECT_EQ((*cached)->get()->size(), bytes_.size());

  Restart();
  const auto sent = origin().StatsOf("/disk.img").requests;
  const auto again = *OpenDeclared("/disk.img");
  EXPECT_TRUE(again->verified());
  EXPECT_EQ(*ReadOn(*ReaderOf(again), 0, bytes_.size()), bytes_);
  EXPECT_EQ(origin().StatsOf("/disk.img").requests, sent);
}

TEST_F(DeclaredDigestTest, AnotherUrlWithTheDigestSharesTheVerifiedBytes) {
  origin().AddFile("/a", bytes_);
  origin().AddFile("/b", bytes_);
  ASSERT_TRUE(ReadOn(*ReaderOf(*OpenDeclared("/a")), 0, bytes_.size()));
  ASSERT_TRUE(BecomesVerified("/a"));
  const auto b = *OpenDeclared("/b");
  EXPECT_TRUE(b->verified());
  EXPECT_EQ(*ReadOn(*ReaderOf(b), 0, bytes_.size()), bytes_);
  EXPECT_EQ(origin().StatsOf("/b").requests, 1U);  // its size
}

TEST_F(DeclaredDigestTest, TheUrlWithoutItIsAnotherObject) {
  origin().AddFile("/disk.img", bytes_);
  const auto declared = *OpenDeclared("/disk.img");
  EXPECT_FALSE(engine_->OpenCached(UrlOf("/disk.img")));
  const auto plain = *Open("/disk.img");
  EXPECT_FALSE(plain->facts().identity.digest);
  EXPECT_NE(plain->key(), declared->key());
  EXPECT_EQ(*OpenDeclared("/disk.img"), declared);
  // Its new version is nothing to the one that the digest fixes.
  origin().AddFile("/disk.img", Pattern(2 * kBlock, 9));
  OpenOptions now;
  now.revalidate = true;
  EXPECT_EQ((*Open("/disk.img", now))->size(), 2 * kBlock);
  EXPECT_FALSE(declared->superseded());
  EXPECT_EQ(*OpenDeclared("/disk.img"), declared);
}

TEST_F(DeclaredDigestTest, WrongBytesAreRefused) {
  std::string wrong = bytes_;
  wrong[kBlock] ^= 1;
  origin().AddFile("/disk.img", wrong);
  const auto object = *OpenDeclared("/disk.img?token=secret");
  ASSERT_TRUE(ReadOn(*ReaderOf(object), 0, wrong.size()));
  std::optional<Error> refusal;
  for (int i = 0; i < 1000 && !refusal; ++i) {
    const auto again = OpenDeclared("/disk.img?token=secret");
    if (!again) refusal = again.error();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::kCorrupt);
  EXPECT_NE(refusal->context.find("/disk.img"), std::string::npos) << refusal->context;
  EXPECT_NE(refusal->context.find(digest_), std::string::npos) << refusal->context;
  EXPECT_EQ(refusal->context.find("secret"), std::string::npos) << refusal->context;
  EXPECT_TRUE(Open("/disk.img?token=secret"));  // the URL itself is not to blame
}

TEST_F(DeclaredDigestTest, WhatIsNoDigestIsRefusedWithoutAsking) {
  origin().AddFile("/disk.img", bytes_);
  for (const char* digest : {"sha256:", "md5:d41d8cd98f00b204e9800998ecf8427e", "nonsense"}) {
    OpenOptions options;
    options.digest = digest;
    const auto object = Open("/disk.img", options);
    ASSERT_FALSE(object) << digest;
    EXPECT_EQ(object.error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(origin().StatsOf("/disk.img").requests, 0U);
}

}  // namespace
}  // namespace dartfs::core
