// What the resolver asks with whose credential, by hand-given answers.
#include "core/engine/resolver.h"

#include <gtest/gtest.h>

#include "resolver_fixture.h"

namespace dartfs::core {
namespace {

TEST_F(ResolverTest, ARefusedSignatureRefusesNobodyElse) {
  Opened expired = Ask(Signed("old"));
  Opened valid = Ask(Signed("new"));
  const auto first = fake_.WaitTake();
  EXPECT_EQ(first->request().url, Signed("old")) << "the URL of who is asked for";
  if (first->Head(403, {{"Content-Length", "0"}})) first->Done();
  const auto second = fake_.WaitTake();
  EXPECT_EQ(second->request().url, Signed("new"));
  second->AnswerRange("bytes", "\"1\"");
  EXPECT_EQ(expired.get().error().code, Code::kForbidden);
  const auto object = valid.get();
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ((*object)->size(), 5u);
}

TEST_F(ResolverTest, ARememberedRefusalIsTheSignaturesAlone) {
  Opened expired = Ask(Signed("old"));
  const auto first = fake_.WaitTake();
  if (first->Head(403, {{"Content-Length", "0"}})) first->Done();
  EXPECT_EQ(expired.get().error().code, Code::kForbidden);
  EXPECT_EQ(Ask(Signed("old")).get().error().code, Code::kForbidden);  // not asked again
  Opened valid = Ask(Signed("new"));
  fake_.WaitTake()->AnswerRange("bytes", "\"1\"");
  EXPECT_TRUE(valid.get());
}

// A broken origin: the same strong ETag, another size.
TEST_F(ResolverTest, AnotherSizeUnderTheSameETagIsAnotherObject) {
  const std::string big = Pattern(kBlock, 45);
  Opened opened = Ask("http://h.example/x");
  fake_.WaitTake()->AnswerRange(big, "\"same\"");
  const auto old = *opened.get();
  const auto reader = asked_->MakeReader(old, Requester{old->facts().url, ""});
  auto first = std::async(std::launch::async, [&] { return ReadOn(*reader, 0, kBlock); });
  fake_.WaitTake()->AnswerRange(big, "\"same\"");
  ASSERT_EQ(*first.get(), big);

  const std::string small = Pattern(100, 46);
  OpenOptions again;
  again.revalidate = true;
  Opened reopened = Ask("http://h.example/x", again);
  fake_.WaitTake()->AnswerRange(small, "\"same\"");
  const auto fresh = *reopened.get();
  EXPECT_EQ(fresh->size(), small.size());
  EXPECT_TRUE(old->superseded());
  const auto got = ReadOn(*reader, 0, kBlock);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kStale);
}

}  // namespace
}  // namespace dartfs::core
