// Store::Verify: files that can't be opened, and checks that wait for one another.
#include <atomic>
#include <future>
#include <thread>

#include "core/store/store_lend_fixture.h"

namespace dartfs::core {
namespace {

using StoreVerifyTest = StoreLendFixture;

TEST_F(StoreVerifyTest, AFileThatIsGoneIsFoundByTheCheck) {
  Start();
  PutAll(Object("a", 3 * kBlock));
  Restart();
  const auto a = Object("a", 3 * kBlock);
  ASSERT_TRUE(std::filesystem::remove(PathOf("a")));
  EXPECT_FALSE(Verify(a).verified);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
}

TEST_F(StoreVerifyTest, AFileThatCannotBeOpenedIsKept) {
  Start();
  PutAll(Object("a", 3 * kBlock));
  Restart();
  const auto a = Object("a", 3 * kBlock);
  const std::string dir = std::filesystem::path(PathOf("a")).parent_path();
  std::filesystem::rename(dir, dir + ".aside");
  std::filesystem::create_symlink(dir, dir);  // a loop
  const auto report = store_->Verify(a.object, nullptr);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kUnavailable);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 3U);
  std::filesystem::remove(dir);
  std::filesystem::rename(dir + ".aside", dir);
  EXPECT_TRUE(Verify(a).verified);
}

// The first one's read is held; those behind it have their turns in order, or give up.
TEST_F(StoreVerifyTest, ChecksWaitForTheirTurn) {
  Start();
  const std::string names[] = {"a", "b", "c"};
  std::vector<Held> held;
  for (const auto& name : names) held.push_back(Full(name, 2 * kBlock));
  ASSERT_TRUE(store_->Flush());
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kRead ? DiskFault::Kind::kHold
                                                                : DiskFault::Kind::kNone};
  });
  std::thread first([&] { EXPECT_TRUE(Verify(held[0]).verified); });
  ASSERT_TRUE(Eventually([&] { return faulty_->held() == 1; }));
  const auto gives_up = store_->Verify(held[1].object, [] { return false; });
  ASSERT_TRUE(gives_up);
  EXPECT_FALSE(gives_up->verified);
  std::atomic<int> ended = 0;
  std::vector<std::thread> others;
  for (int i = 1; i <= 2; ++i) {
    const auto waits = std::make_shared<std::promise<void>>();
    auto asked = std::make_shared<std::atomic<bool>>(false);
    others.emplace_back([&, i, asked, waits] {
      const auto report = store_->Verify(held[static_cast<size_t>(i)].object, [&, asked, waits] {
        if (!asked->exchange(true)) waits->set_value();
        return true;
      });
      EXPECT_TRUE(report && report->verified);
      EXPECT_EQ(++ended, i);
    });
    waits->get_future().wait();
  }
  EXPECT_EQ(faulty_->held(), 1U);
  faulty_->Heal();
  faulty_->Release();
  first.join();
  for (auto& thread : others) thread.join();
}

}  // namespace
}  // namespace dartfs::core
