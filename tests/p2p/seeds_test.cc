#include "p2p/seeds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

using core::Code;

class SeedsTest : public ::testing::Test {
 protected:
  core::Result<std::unique_ptr<Seeder>> Parse(const std::string& spec) {
    SeederContext context;
    context.resolve = [this](const std::string& host) {
      asked_.push_back(host);
      return answer_;
    };
    return ParseSeeder(spec, context);
  }
  std::vector<std::string> Seeds(const std::string& spec) {
    const auto seeder = Parse(spec);
    EXPECT_TRUE(seeder) << seeder.error().ToString();
    if (!seeder) return {};
    const auto seeds = (*seeder)->Seeds();
    EXPECT_TRUE(seeds);
    return seeds ? *seeds : std::vector<std::string>();
  }

  std::vector<std::string> asked_;
  core::Result<std::vector<std::string>> answer_ = std::vector<std::string>();
};

using Texts = std::vector<std::string>;

TEST_F(SeedsTest, AListIsTakenAsItIs) {
  EXPECT_EQ(Seeds("static:a:1,10.0.0.2:8146"), (Texts{"a:1", "10.0.0.2:8146"}));
  EXPECT_EQ(Seeds("a:1, [fd00::7]:2 ,"), (Texts{"a:1", "[fd00::7]:2"}));
  EXPECT_EQ(asked_, Texts());
}

TEST_F(SeedsTest, ANameIsLookedUpEachTime) {
  const auto seeder = Parse("dns:peers.example:8146");
  ASSERT_TRUE(seeder);
  EXPECT_EQ(asked_, Texts()) << "not before it is needed";
  answer_ = Texts{"10.0.0.2", "fd00::7", "10.0.0.1", "10.0.0.2"};
  EXPECT_EQ((*seeder)->Seeds().value(),
            (Texts{"10.0.0.1:8146", "10.0.0.2:8146", "[fd00::7]:8146"}));
  answer_ = Texts();
  EXPECT_EQ((*seeder)->Seeds().value(), Texts()) << "nobody there is no error";
  answer_ = core::MakeError(Code::kUnavailable, "no such name");
  EXPECT_EQ((*seeder)->Seeds().error().code, Code::kUnavailable);
  EXPECT_EQ(asked_, (Texts{"peers.example", "peers.example", "peers.example"}));
}

TEST_F(SeedsTest, WhatIsNoSeedIsRefusedWithWhatWouldBe) {
  const struct {
    const char* spec;
    const char* says;
  } rows[] = {{"", "host:port,..."},
              {"static:", "host:port,..."},
              {" , ", "host:port,..."},
              {"node-7", "'node-7' is no peer's address"},
              {"a:1,b:0", "'b:0' is no peer's address"},
              {"a:1,:2", "':2' is no peer's address"},
              {"a:65536", "such as 10.0.0.7:8146"},
              {"dns:", "dns:<name>:<port>"},
              {"dns:peers.example", "dns:<name>:<port>"},
              {"dns:peers.example:0", "dns:<name>:<port>"},
              {"k8s:default/dartfs:8146", "is no peer's address"}};
  for (const auto& row : rows) {
    const auto seeder = Parse(row.spec);
    ASSERT_FALSE(seeder) << row.spec;
    EXPECT_EQ(seeder.error().code, Code::kInvalidArgument);
    EXPECT_NE(seeder.error().context.find(row.says), std::string::npos) << seeder.error().context;
  }
}

}  // namespace
}  // namespace dartfs::p2p
