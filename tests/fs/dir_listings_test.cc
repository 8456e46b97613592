#include "fs/dir_listings.h"

#include "fs/http_namespace_fixture.h"

namespace dartfs::fs {
namespace {

using core::NameTable;

class DirListingsTest : public HttpNamespaceTest {
 protected:
  void Make(size_t memory_bytes) {
    DirListingsOptions options;
    options.space = UrlSpace::Below(core::ParseUrl("http://h/d/").value());
    options.authorization = "Basic abc";
    options.memory_bytes = memory_bytes;
    listings_ = std::make_unique<DirListings>(std::move(options), engine_, scheduler_, random_);
  }
  ~DirListingsTest() override { listings_.reset(); }

  Pending<GotDir> Get(const std::string& key) {
    Pending<GotDir> pending;
    listings_->Get(key, In(seconds(30)),
                   [result = pending.result](Result<GotDir> got) { *result = std::move(got); });
    scheduler_.RunReady();
    return pending;
  }
  std::string Record(const std::string& key) {
    const std::string url = "http://h/d/" + key;
    return engine_.store().GetName(NameTable::kNames, DirListingKey(url)).value_or("");
  }
  void PutRecord(const std::string& key, const std::string& record) {
    engine_.store().PutName(NameTable::kNames, DirListingKey("http://h/d/" + key), record);
  }

  std::unique_ptr<DirListings> listings_;
};

TEST_F(DirListingsTest, MemoryIsBoundedInBytes) {
  constexpr size_t kLimit = 100'000;
  Make(kLimit);
  std::vector<std::string> hrefs;
  for (int i = 0; i < 100; ++i) hrefs.push_back(std::to_string(i) + std::string(200, 'x'));
  for (const std::string key : {"a/", "b/", "c/", "d/"}) {
    auto got = Get(key);
    AnswerIndex("http://h/d/" + key, hrefs);
    ASSERT_TRUE(got.done() && *got);
    // A listing of 100 names of 200 bytes and more: three of them fit at most.
    EXPECT_GT((*got)->listing->memory_bytes(), kLimit / 4);
    EXPECT_LT((*got)->listing->memory_bytes(), kLimit);
  }
  // Nothing but memory remembers them.
  for (const std::string key : {"a/", "b/", "c/", "d/"}) PutRecord(key, "");
  EXPECT_EQ(listings_->Known("a/").listing, nullptr);
  EXPECT_NE(listings_->Known("d/").listing, nullptr);
}

TEST_F(DirListingsTest, WhatWentWrongIsExplained) {
  Make(1 << 20);
  EXPECT_EQ(listings_->Explain("").problem, nullptr);
  for (const int status : {401, 403, 404, 407, 500, 503}) {
    const std::string key = std::to_string(status) + "/";
    auto got = Get(key);
    AnswerStatus("http://h/d/" + key, status);
    ASSERT_TRUE(got.done());
    scheduler_.Advance(seconds(3));
    const ListingReport report = listings_->Explain(key);
    EXPECT_EQ(report.listing, nullptr) << status;
    ASSERT_NE(report.problem, nullptr) << status;
    EXPECT_EQ(report.problem->http_status, status);
    EXPECT_EQ(report.problem_age_ms, 3000);
    EXPECT_NE(report.problem->context.find("http://h/d/" + key), std::string::npos);
  }
  auto late = Get("late/");
  scheduler_.Advance(seconds(31));
  ASSERT_TRUE(late.done());
  EXPECT_EQ(listings_->Explain("late/").problem->code, Code::kDeadlineExceeded);
}

TEST_F(DirListingsTest, AListingEndsWhatWentWrong) {
  Make(1 << 20);
  auto got = Get("a/");
  AnswerStatus("http://h/d/a/", 403);
  scheduler_.Advance(seconds(2));
  got = Get("a/");
  AnswerIndex("http://h/d/a/", {"x"});
  ASSERT_TRUE(got.done() && *got);
  EXPECT_EQ((*got)->problem, nullptr);
  EXPECT_EQ(listings_->Explain("a/").problem, nullptr);
  EXPECT_NE(listings_->Explain("a/").listing, nullptr);
}

TEST_F(DirListingsTest, DirectoriesWithoutAListingCostLittleButNotNothing) {
  Make(/*memory_bytes=*/5'000);
  auto first = Get("first/");
  AnswerStatus("http://h/d/first/", 403);
  for (int i = 0; i < 3; ++i) {
    auto got = Get(std::to_string(i) + "/");
    AnswerStatus("http://h/d/" + std::to_string(i) + "/", 403);
  }
  EXPECT_NE(listings_->Known("first/").listing, nullptr);
  for (int i = 0; i < 50; ++i) {
    auto got = Get(std::to_string(i) + "x/");
    AnswerStatus("http://h/d/" + std::to_string(i) + "x/", 403);
  }
  EXPECT_EQ(listings_->Known("first/").listing, nullptr);
}

TEST_F(DirListingsTest, AbsenceOfWhatTheIndexDoesNotHoldWritesNothing) {
  Make(1 << 20);
  PutRecord("absent/", "not a listing");  // a deletion would show
  auto got = Get("absent/");
  AnswerStatus("http://h/d/absent/", 404);
  ASSERT_TRUE(got.done() && *got);
  EXPECT_EQ((*got)->presence, DirPresence::kAbsent);
  EXPECT_EQ(Record("absent/"), "not a listing");
}

TEST_F(DirListingsTest, AbsenceDeletesWhatAnEarlierRunWrote) {
  Make(1 << 20);
  auto got = Get("sub/");
  AnswerIndex("http://h/d/sub/", {"a"});
  ASSERT_NE(Record("sub/"), "");
  Make(1 << 20);
  got = Get("sub/");
  AnswerStatus("http://h/d/sub/", 404);
  ASSERT_TRUE(got.done() && *got);
  EXPECT_EQ(Record("sub/"), "");
}

TEST_F(DirListingsTest, ADirectoryIsWrittenDownOnceOverRestarts) {
  for (int run = 0; run < 2; ++run) {
    Make(1 << 20);
    listings_->RememberDirectory("sub/");
    scheduler_.RunReady();
    EXPECT_EQ(engine_.store().puts(), 1u);
    EXPECT_TRUE(listings_->WasDirectory("sub/"));
  }
}

}  // namespace
}  // namespace dartfs::fs
