// Content-addressed objects: whose bytes they are before and after all of them have been hashed.
#include <gtest/gtest.h>

#include <thread>

#include "core/base/hash.h"
#include "core/engine/digest_record.h"
#include "engine_fixture.h"

namespace dartfs::core {
namespace {

class DigestCheckTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    other_ = origin::TestOrigin::Start();
    bytes_ = Pattern(6 * kBlock + 321, 77);
    path_ = "/v2/a/blobs/sha256:" + HexDigestOf("sha256", bytes_);
  }

  std::string Elsewhere() { return other_->Url(path_); }

  // The object of the URL once it is verified.
  std::shared_ptr<Object> Verified(const std::string& url) {
    for (int i = 0; i < 1000; ++i) {
      auto object = Open(url);
      if (object && (*object)->verified() && StoreKnowsTheDigest()) return *object;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << url << " is never verified";
    return nullptr;
  }
  bool StoreKnowsTheDigest() {
    const Url url = UrlOf(path_);
    return store_->GetName(NameTable::kUrls, DigestRecordName(*DigestOfUrl(url, options_.identity)))
        .has_value();
  }
  void WaitRefused() {
    for (int i = 0; i < 1000 && engine_->Stats().wrong_digests == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(engine_->Stats().wrong_digests, 1u);
    // The last thing done is to forget the URL's object.
    for (int i = 0; i < 1000 && Open(path_); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  // Reads other objects until nothing else is left in the store.
  void EvictAll() {
    const uint64_t blocks = store_options_.limit_bytes / kBlock;
    for (const char* name : {"/x", "/y"}) {
      origin().AddFile(name, Pattern(blocks * kBlock, 5));
      ASSERT_TRUE(Read(name));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  std::unique_ptr<origin::TestOrigin> other_;
  std::string bytes_;
  std::string path_;
};

TEST_F(DigestCheckTest, VerifiedOnceAllHasBeenReadInOrder) {
  origin().AddFile(path_, bytes_);
  const auto object = *Open(path_);
  EXPECT_FALSE(object->verified());
  const StoreKey before = object->key();
  EXPECT_EQ(*ReadThrough(path_), bytes_);
  const auto verified = Verified(path_);
  ASSERT_NE(verified, nullptr);
  EXPECT_NE(verified->key(), before);
  EXPECT_EQ(verified->key(), MakeStoreKey(verified->facts().identity, Version(), Trust::kVerified));
  EXPECT_EQ(*Read(path_), bytes_);
}

TEST_F(DigestCheckTest, VerifiedInWhateverOrderItCame) {
  origin().AddFile(path_, bytes_);
  const auto object = *Open(path_);
  const auto reader = ReaderOf(object);
  for (const uint64_t block : {6, 2, 4, 0, 5, 3, 1}) {
    ASSERT_TRUE(ReadOn(*reader, block * kBlock, 100));
  }
  EXPECT_NE(Verified(path_), nullptr);
  EXPECT_EQ(*Read(path_), bytes_);
}

TEST_F(DigestCheckTest, Sha512AndTheRegistryLayout) {
  const std::string hex = HexDigestOf("sha512", bytes_);
  path_ = "/blobs/sha512/" + hex.substr(0, 2) + "/" + hex + "/data";
  origin().AddFile(path_, bytes_);
  EXPECT_EQ(*Read(path_), bytes_);
  EXPECT_NE(Verified(path_), nullptr);
}

TEST_F(DigestCheckTest, TheEmptyObject) {
  path_ = "/sha256:" + HexDigestOf("sha256", "");
  origin().AddFile(path_, "");
  EXPECT_NE(Verified(path_), nullptr);
}

TEST_F(DigestCheckTest, NotAllOfItIsNotVerified) {
  origin().AddFile(path_, bytes_);
  const auto object = *Open(path_);
  ASSERT_TRUE(ReadOn(*ReaderOf(object), 0, 5 * kBlock));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(object->verified());
  EXPECT_FALSE(StoreKnowsTheDigest());
}

TEST_F(DigestCheckTest, SharedByAllOriginsOnceVerifiedAndNotBefore) {
  origin().AddFile(path_, bytes_);
  other_->AddFile(path_, bytes_);
  const auto mine = *Open(path_);
  ASSERT_TRUE(ReadOn(*ReaderOf(mine), 0, 2 * kBlock));
  const auto theirs = *Open(Elsewhere());
  EXPECT_NE(mine->key(), theirs->key());
  ASSERT_TRUE(Read(path_));
  ASSERT_NE(Verified(path_), nullptr);

  Restart();  // nobody holds the other origin's own object
  const auto sent = other_->StatsOf(path_).requests;
  EXPECT_EQ(*Read(Elsewhere()), bytes_);
  EXPECT_EQ(other_->StatsOf(path_).requests, sent);
  EXPECT_EQ((*Open(Elsewhere()))->key(), (*Open(path_))->key());
}

TEST_F(DigestCheckTest, AnotherUrlOfTheOriginSharesItBefore) {
  origin().AddFile(path_, bytes_);
  ASSERT_TRUE(Read(path_));
  ASSERT_TRUE(WaitStored(*Open(path_)));
  const std::string second = "/v2/b" + path_.substr(5);
  origin().AddFile(second, bytes_);
  EXPECT_EQ(*Read(second), bytes_);
  EXPECT_EQ(origin().StatsOf(second).requests, 1u);  // whether it is there, and may be read
}

// In the moment in which it gets its digest's key it is found under the old one or under the new.
TEST_F(DigestCheckTest, AnOpenWhileTheDigestIsFiledFetchesNothingAgain) {
  for (uint64_t round = 0; round < 60; ++round) {
    const std::string bytes = Pattern(2 * kBlock + 5, 1000 + round);
    const std::string blob = "blobs/sha256:" + HexDigestOf("sha256", bytes);
    origin().AddFile("/v2/a/" + blob, bytes);
    origin().AddFile("/v2/b/" + blob, bytes);
    ASSERT_TRUE(Read("/v2/a/" + blob));
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(*Read("/v2/b/" + blob), bytes);
      std::this_thread::sleep_for(std::chrono::microseconds(300 * (round % 5)));
    }
    ASSERT_LE(origin().StatsOf("/v2/b/" + blob).requests, 1u) << round;  // the probe
  }
}

TEST_F(DigestCheckTest, WrongBytesAreDroppedAndTheUrlLeftAlone) {
  std::string wrong = bytes_;
  wrong[3 * kBlock + 5] ^= 1;
  origin().AddFile(path_, wrong);
  other_->AddFile(path_, bytes_);
  const auto object = *Open(path_);
  const auto reader = ReaderOf(object);
  ASSERT_TRUE(ReadOn(*reader, 0, wrong.size()));
  WaitRefused();

  const auto reopened = Open(path_);
  ASSERT_FALSE(reopened);
  EXPECT_EQ(reopened.error().code, Code::kCorrupt);
  EXPECT_NE(reopened.error().context.find(path_), std::string::npos);
  const auto reread = ReadOn(*reader, 3 * kBlock, 10);
  ASSERT_FALSE(reread);
  EXPECT_EQ(reread.error().code, Code::kCorrupt);
  EXPECT_EQ(store_->Stats().used_bytes, 0u);
  EXPECT_FALSE(StoreKnowsTheDigest());
  EXPECT_EQ(*Read(Elsewhere()), bytes_);  // who tells the truth is believed
  EXPECT_NE(Verified(Elsewhere()), nullptr);
}

TEST_F(DigestCheckTest, VerifiedOverARestart) {
  origin().AddFile(path_, bytes_);
  ASSERT_TRUE(Read(path_));
  ASSERT_NE(Verified(path_), nullptr);
  Restart();
  const auto object = Open(path_);
  ASSERT_TRUE(object);
  EXPECT_TRUE((*object)->verified());
  const auto sent = origin().StatsOf(path_).requests;
  EXPECT_EQ(*Read(path_), bytes_);
  EXPECT_EQ(origin().StatsOf(path_).requests, sent);
}

TEST_F(DigestCheckTest, HashedAfterARestartOutOfTheStore) {
  origin().AddFile(path_, bytes_);
  const auto half = *Open(path_);
  ASSERT_TRUE(ReadOn(*ReaderOf(half), 0, 3 * kBlock));
  Restart();
  ASSERT_TRUE(Read(path_));
  EXPECT_NE(Verified(path_), nullptr);
  EXPECT_EQ(*Read(path_), bytes_);
}

TEST_F(DigestCheckTest, AnotherSizeIsNotTheVerifiedObject) {
  origin().AddFile(path_, bytes_);
  other_->AddFile(path_, bytes_ + "more");
  ASSERT_TRUE(Read(path_));
  ASSERT_NE(Verified(path_), nullptr);
  const auto lie = Open(Elsewhere());
  ASSERT_FALSE(lie);
  EXPECT_EQ(lie.error().code, Code::kBadResponse);
  EXPECT_EQ(*Read(path_), bytes_);
}

TEST_F(DigestCheckTest, TheVerifiedObjectIsServedForAnOriginThatIsGone) {
  origin().AddFile(path_, bytes_);
  const std::string gone = Elsewhere();
  other_.reset();
  ASSERT_TRUE(Read(path_));
  ASSERT_NE(Verified(path_), nullptr);
  EXPECT_EQ(*Read(gone), bytes_);
}

class EvictedDigestTest : public DigestCheckTest {
 protected:
  void SetUp() override {
    DigestCheckTest::SetUp();
    store_options_.limit_bytes = 10 * kBlock;
    Restart();
  }
};

// No byte of a verified object is shown on the word of another URL.
TEST_F(EvictedDigestTest, ABlockFetchedAgainIsHeldToTheVerifiedBytes) {
  origin().AddFile(path_, bytes_);
  ASSERT_TRUE(Read(path_));
  ASSERT_NE(Verified(path_), nullptr);
  std::string wrong = bytes_;
  for (uint64_t block = 0; block < 7; ++block) wrong[block * kBlock + 100] ^= 4;
  other_->AddFile(path_, wrong);
  EvictAll();

  const auto evil = *Open(Elsewhere());
  EXPECT_TRUE(evil->verified());
  ASSERT_EQ(store_->PresentBlocks(*evil->stored()), 0u);
  for (uint64_t block = 0; block < 7; ++block) {
    const auto got = ReadOn(*ReaderOf(evil), block * kBlock, 200);
    ASSERT_FALSE(got) << block;
    EXPECT_EQ(got.error().code, Code::kBadResponse);
  }
  EXPECT_EQ(store_->PresentBlocks(*evil->stored()), 0u);
  EXPECT_EQ(*Read(path_), bytes_);
  EXPECT_EQ(engine_->Stats().wrong_digests, 0u);
}

// Before the whole is known: two answers for one block can't both be right.
TEST_F(EvictedDigestTest, TwoAnswersThatDifferRefuseTheObject) {
  origin().AddFile(path_, bytes_);
  const auto object = *Open(path_);
  ASSERT_TRUE(ReadOn(*ReaderOf(object), 0, 3 * kBlock));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // hashed
  EvictAll();
  std::string other = bytes_;
  other[kBlock + 100] ^= 4;
  origin().AddFile(path_, other);
  static_cast<void>(ReadOn(*ReaderOf(object), kBlock, 200));
  WaitRefused();
  EXPECT_FALSE(ReadOn(*ReaderOf(object), kBlock, 200));
}

}  // namespace
}  // namespace dartfs::core
