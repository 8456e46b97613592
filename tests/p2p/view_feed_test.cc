#include "p2p/view_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace dartfs::p2p {
namespace {

std::vector<Member> Members(int count) {
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) members.push_back({.id = "m" + std::to_string(i), .addr = "a:1"});
  return members;
}

TEST(ViewFeed, APublishedViewIsTheCurrentOne) {
  ViewFeed feed(Members(2));
  const ViewPtr first = feed.Current();
  EXPECT_EQ(first->members().size(), 2U);
  const ViewPtr second = feed.Publish(Members(3));
  EXPECT_EQ(feed.Current(), second);
  EXPECT_NE(second->epoch(), first->epoch());
  EXPECT_EQ(first->members().size(), 2U) << "who holds it keeps it";
}

TEST(ViewFeed, ASubscriberGetsTheCurrentOneThenTheNewestAlone) {
  ViewFeed feed(Members(1));
  int woken = 0;
  const auto subscription = feed.Subscribe([&woken] { ++woken; });
  EXPECT_EQ(subscription->Take(), feed.Current());
  EXPECT_EQ(subscription->Take(), nullptr);
  feed.Publish(Members(2));
  feed.Publish(Members(3));
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(subscription->Take(), feed.Current());
  EXPECT_EQ(subscription->Take(), nullptr);
}

TEST(ViewFeed, AnEndedSubscriptionIsNotTold) {
  ViewFeed feed(Members(1));
  int woken = 0;
  auto subscription = feed.Subscribe([&woken] { ++woken; });
  subscription.reset();
  feed.Publish(Members(2));
  EXPECT_EQ(woken, 0);
}

TEST(ViewFeed, OfConcurrentPublishesTheLastOwnsBoth) {
  ViewFeed feed(Members(0));
  const auto early = feed.Subscribe();
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) EXPECT_NE(feed.Current(), nullptr);
  });
  std::vector<std::thread> writers;
  for (int i = 1; i <= 4; ++i) {
    writers.emplace_back([&feed, i] {
      for (int round = 0; round < 200; ++round) feed.Publish(Members(i));
    });
  }
  // Subscribed in the middle: either the change was there already, or it comes.
  const auto late = feed.Subscribe();
  for (std::thread& writer : writers) writer.join();
  stop = true;
  reader.join();
  EXPECT_EQ(early->Take(), feed.Current());
  EXPECT_EQ(late->Take(), feed.Current());
}

}  // namespace
}  // namespace dartfs::p2p
