#include "app/attach_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "app/option_table.h"

namespace dartfs::app {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kUrl = "http://images.example/tree/";

AttachRequest Asked(std::vector<std::string> words) {
  words.insert(words.begin(), {kUrl, "/mnt"});
  auto parsed = ParseCommandLine(words);
  EXPECT_TRUE(parsed) << parsed.error().ToString();
  return parsed ? MakeAttachRequest(*parsed, "/mnt") : AttachRequest();
}

Options NodeOf(const std::vector<std::string>& words) {
  auto parsed = ParseCommandLine(words);
  EXPECT_TRUE(parsed) << parsed.error().ToString();
  return parsed ? parsed->options : Options();
}

std::string Refusal(const std::vector<std::string>& asked, const Options& node) {
  const auto options = OptionsOfAttach(Asked(asked), node);
  return options ? "" : options.error().context;
}

TEST(AttachRequest, ThereAndBack) {
  AttachRequest request = Asked({"-o", "ttl=5s,umask=027", "--ignore-query", "a,b"});
  request.source = "http://user:p%2Fw@h/";
  request.mountpoint = "/mnt/\xff \n";
  request.mount_namespace = 4026531841;
  request.device = 0x1234567890;
  const std::string line = ToJson(request).dump();
  const auto back = AttachRequestFrom(json::parse(line));
  ASSERT_TRUE(back) << back.error().ToString();
  EXPECT_EQ(back->source, request.source);
  EXPECT_EQ(back->mountpoint, request.mountpoint);
  EXPECT_EQ(back->options, request.options);
  EXPECT_EQ(back->mount_namespace, request.mount_namespace);
  EXPECT_EQ(back->device, request.device);
}

TEST(AttachRequest, WhatIsNone) {
  const json good = ToJson(Asked({}));
  ASSERT_TRUE(AttachRequestFrom(good));
  for (const char* field : {"source", "mountpoint", "options", "mount_namespace", "device"}) {
    json without = good;
    without.erase(field);
    EXPECT_FALSE(AttachRequestFrom(without)) << field;
    json wrong = good;
    wrong[field] = json::array({1});
    EXPECT_FALSE(AttachRequestFrom(wrong)) << field;
  }
  json relative = good;
  relative["mountpoint"] = "mnt";
  EXPECT_FALSE(AttachRequestFrom(relative));
  json number = good;
  number["options"]["ttl"] = 5;
  EXPECT_FALSE(AttachRequestFrom(number));
  json escape = good;
  escape["source"] = "%zz";
  EXPECT_FALSE(AttachRequestFrom(escape));
}

TEST(AttachRequest, AMountHasItsOwnOptionsAndNoOthers) {
  const Options node = NodeOf({kUrl, "/first", "--immutable", "--ttl", "9s", "--umask", "077"});
  const auto options = OptionsOfAttach(Asked({"-o", "ttl=5s,noexec,timeout=none"}), node);
  ASSERT_TRUE(options) << options.error().ToString();
  EXPECT_EQ(options->source, kUrl);
  EXPECT_EQ(options->mountpoint, "/mnt");
  EXPECT_EQ(options->ttl, seconds(5));
  EXPECT_TRUE(options->noexec);
  EXPECT_FALSE(options->timeout);
  EXPECT_FALSE(options->immutable) << "the first mount's";
  EXPECT_FALSE(options->umask);
  EXPECT_EQ(options->uid, geteuid()) << "who asks";
}

TEST(AttachRequest, OfTheServiceWhatIsNotNamedIsAsTheServiceWasTold) {
  const Options node = NodeOf({"--no-mount", "--immutable", "--ttl", "9s", "--allow-other"});
  const auto options = OptionsOfAttach(Asked({"-o", "ttl=5s,immutable=false"}), node);
  ASSERT_TRUE(options) << options.error().ToString();
  EXPECT_EQ(options->ttl, seconds(5));
  EXPECT_FALSE(options->immutable);
  EXPECT_TRUE(options->allow_other);
}

TEST(AttachRequest, NodeOptionsAreTheNodes) {
  const Options node = NodeOf({kUrl, "/first", "--cache-size", "2GiB", "--ignore-query", "a,b",
                               "--log-file", "/var/log/d", "-f", "--cache-dir", "/c"});
  EXPECT_EQ(Refusal({}, node), "");
  EXPECT_EQ(Refusal({"--cache-size", "2048MiB", "--log-file", "/var/log/d"}, node), "");
  EXPECT_EQ(Refusal({"--ignore-query", "a", "--ignore-query", "b"}, node), "");
  EXPECT_EQ(Refusal({"--connections", "16", "--log-level", "info"}, node), "") << "the defaults";
  EXPECT_EQ(Refusal({"-d"}, node), "") << "how the asking process behaves";
  EXPECT_EQ(Refusal({"--cache-dir", "/c/../c"}, node), "") << "found by it";
  EXPECT_THAT(Refusal({"--cache-size", "1GiB"}, node),
              AllOf(HasSubstr("cache-size 1GiB"), HasSubstr("with 2GiB"), HasSubstr("/c")));
  EXPECT_THAT(Refusal({"--pid-file", "/p"}, node),
              AllOf(HasSubstr("pid-file /p"), HasSubstr("without")));
  EXPECT_THAT(Refusal({"--ignore-query", "b"}, node), HasSubstr("ignore-query b"));
  EXPECT_THAT(Refusal({"--trusted-origins", "h"}, node), HasSubstr("trusted-origins h"));
}

TEST(AttachRequest, EveryOptionOfTheNodeIsCompared) {
  const std::map<std::string, std::string> others = {{"cache-size", "1GiB"},
                                                     {"namespace", "n"},
                                                     {"connections", "3"},
                                                     {"inflight", "99MiB"},
                                                     {"read-ahead", "1MiB"},
                                                     {"ignore-query", "q"},
                                                     {"oci-digest-only", "true"},
                                                     {"trusted-origins", "t"},
                                                     {"spool-limit", "5"},
                                                     {"allow-link-local", "true"},
                                                     {"ca-file", "/x"},
                                                     {"disk-io", "pool"},
                                                     {"listen", "none"},
                                                     {"admin", ":1"},
                                                     {"prefix", "x"},
                                                     {"origin", "http://h/"},
                                                     {"host", "h"},
                                                     {"proxy-https", "h"},
                                                     {"pass-redirects", "h"},
                                                     {"connect", "443"},
                                                     {"registry", "https://r/"},
                                                     {"registry-allow", "r"},
                                                     {"registry-auth", "/f"},
                                                     {"registry-realm", "r"},
                                                     {"origin-allow", "h"},
                                                     {"origin-deny", "h"},
                                                     {"access-log", "/a"},
                                                     {"http-threads", "2"},
                                                     {"max-connections", "5"},
                                                     {"log-level", "warn"},
                                                     {"log-file", "/l"},
                                                     {"pid-file", "/p"}};
  for (const OptionRow& row : OptionTable()) {
    if (row.kind != OptionKind::kNode || row.name == "cache-dir") continue;
    const auto other = others.find(std::string(row.name));
    ASSERT_NE(other, others.end()) << row.name << " has no row here";
    AttachRequest request = Asked({});
    request.options[other->first] = other->second;
    const auto refused = OptionsOfAttach(request, Options());
    ASSERT_FALSE(refused) << row.name;
    EXPECT_EQ(refused.error().code, core::Code::kRefused);
    EXPECT_THAT(refused.error().context, HasSubstr(other->first));
  }
}

TEST(AttachRequest, AnotherVersionsOptionIsRefused) {
  AttachRequest request = Asked({});
  request.options["invented"] = "1";
  EXPECT_FALSE(OptionsOfAttach(request, Options()));
  request = Asked({});
  request.options["ttl"] = "soon";
  EXPECT_FALSE(OptionsOfAttach(request, Options()));
}

}  // namespace
}  // namespace dartfs::app
