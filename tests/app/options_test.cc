#include "app/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "app/option_table.h"

namespace dartfs::app {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kUrl = "http://images.example/tree/";

// A TOML file for the length of a test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "dartfs-options-" + std::to_string(getpid()) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Options Parsed(std::vector<std::string> extra) {
  extra.insert(extra.begin(), {kUrl, "/mnt"});
  auto parsed = ParseCommandLine(extra);
  EXPECT_TRUE(parsed) << parsed.error().ToString();
  return parsed ? parsed->options : Options();
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  auto parsed = ParseCommandLine(arguments);
  return parsed ? "" : parsed.error().context;
}

TEST(Options, Defaults) {
  const Options options = Parsed({});
  EXPECT_EQ(options.source, kUrl);
  EXPECT_EQ(options.mountpoint, "/mnt");
  EXPECT_EQ(options.cache_size, uint64_t{10} << 30);
  EXPECT_EQ(options.ttl, seconds(60));
  EXPECT_EQ(options.timeout, core::Duration(seconds(60)));
  EXPECT_EQ(options.connections, 16u);
  EXPECT_EQ(options.cache_namespace, "dart");
  EXPECT_FALSE(options.foreground);
  EXPECT_FALSE(options.umask);
}

// Every row of the table is accepted at all three places, with the same effect.
struct Value {
  const char* name;
  const char* value;  // nullptr: a switch
  bool (*holds)(const Options&);
};

const Value kValues[] = {
    {"debug", nullptr, [](const Options& o) { return o.foreground && o.log_level == "debug"; }},
    {"foreground", nullptr, [](const Options& o) { return o.foreground; }},
    {"no-mount", nullptr, nullptr},  // takes no source: see NoMount
    {"cache-dir", "/c", [](const Options& o) { return o.cache_dir == "/c"; }},
    {"cache-size", "1GB", [](const Options& o) { return o.cache_size == 1'000'000'000; }},
    {"namespace", "team", [](const Options& o) { return o.cache_namespace == "team"; }},
    {"ttl", "5m", [](const Options& o) { return o.ttl == seconds(300); }},
    {"immutable", nullptr, [](const Options& o) { return o.immutable; }},
    {"timeout", "none", [](const Options& o) { return !o.timeout.has_value(); }},
    {"passthrough", "off", [](const Options& o) { return !o.passthrough; }},
    {"fill", "all", [](const Options& o) { return o.fill == fs::FillMode::kAll; }},
    {"connections", "4", [](const Options& o) { return o.connections == 4; }},
    {"inflight", "64MiB", [](const Options& o) { return o.inflight == uint64_t{64} << 20; }},
    {"read-ahead", "8MiB", [](const Options& o) { return o.read_ahead == uint64_t{8} << 20; }},
    {"trusted-origins", "*.r.example",
     [](const Options& o) { return o.trusted_origins.front() == "*.r.example"; }},
    {"ignore-query", "sig", [](const Options& o) { return o.ignore_query.front() == "sig"; }},
    {"oci-digest-only", nullptr, [](const Options& o) { return o.oci_digest_only; }},
    {"spool-limit", "1GiB", [](const Options& o) { return o.spool_limit == uint64_t{1} << 30; }},
    {"allow-link-local", nullptr, [](const Options& o) { return o.allow_link_local; }},
    {"ca-file", "/ca.pem", [](const Options& o) { return o.ca_file == "/ca.pem"; }},
    {"disk-io", "pool",
     [](const Options& o) { return o.disk_io == core::DiskIoOptions::Backend::kPool; }},
    {"allow-other", nullptr, [](const Options& o) { return o.allow_other; }},
    {"uid", "1000", [](const Options& o) { return o.uid == 1000u; }},
    {"gid", "100", [](const Options& o) { return o.gid == 100u; }},
    {"umask", "027", [](const Options& o) { return o.umask == 027u; }},
    {"noexec", nullptr, [](const Options& o) { return o.noexec; }},
    {"listen", "[::1]:9", [](const Options& o) { return o.listen == "[::1]:9"; }},
    {"admin", ":9", [](const Options& o) { return o.admin == ":9"; }},
    {"prefix", "p2p", [](const Options& o) { return o.prefix == "p2p"; }},
    {"origin", "http://h/x/", [](const Options& o) { return o.origin == "http://h/x/"; }},
    {"host", "b", [](const Options& o) { return o.hosts.front() == "b"; }},
    {"proxy-https", "*.r", [](const Options& o) { return o.proxy_https.front() == "*.r"; }},
    {"pass-redirects", "h:1", [](const Options& o) { return o.pass_redirects.front() == "h:1"; }},
    {"connect", "443", [](const Options& o) { return o.connect_ports.front() == 443; }},
    {"registry", "https://r/", [](const Options& o) { return o.registry == "https://r/"; }},
    {"registry-allow", "ghcr.io", [](const Options& o) { return o.registry_allow.size() == 1; }},
    {"registry-auth", "/f", [](const Options& o) { return o.registry_auth == "/f"; }},
    {"registry-realm", "r=t", [](const Options& o) { return o.registry_realm.front() == "r=t"; }},
    {"origin-allow", "10.0.0.0/8", [](const Options& o) { return o.origin_allow.size() == 1; }},
    {"origin-deny", "h:80", [](const Options& o) { return o.origin_deny.front() == "h:80"; }},
    {"access-log", "/a", [](const Options& o) { return o.access_log == "/a"; }},
    {"http-threads", "3", [](const Options& o) { return o.http_threads == 3; }},
    {"max-connections", "9", [](const Options& o) { return o.max_connections == 9; }},
    {"log-level", "warn", [](const Options& o) { return o.log_level == "warn"; }},
    {"log-file", "/l", [](const Options& o) { return o.log_file == "/l"; }},
    {"pid-file", "/p", [](const Options& o) { return o.pid_file == "/p"; }},
};

TEST(Options, EveryRowIsCovered) { EXPECT_EQ(std::size(kValues), OptionTable().size()); }

// What a row shows, it takes, with the same effect.
TEST(Options, ShownValuesAreTaken) {
  for (const Value& row : kValues) {
    if (row.holds == nullptr) continue;
    const OptionRow* const option = FindOption(row.name);
    Options options;
    ASSERT_TRUE(option->set(options, row.value == nullptr ? "true" : row.value)) << row.name;
    const std::string shown = option->show(options);
    Options again;
    ASSERT_TRUE(option->set(again, shown)) << row.name << " " << shown;
    EXPECT_EQ(option->show(again), shown) << row.name;
    if (std::string(row.name) == "debug") continue;  // shows that it stays in the foreground
    EXPECT_TRUE(row.holds(again)) << row.name;
  }
}

TEST(Options, ShownValuesAreExact) {
  Options options;
  const auto shown = [&options](const char* name, const char* value) {
    EXPECT_TRUE(FindOption(name)->set(options, value)) << name;
    return FindOption(name)->show(options);
  };
  EXPECT_EQ(shown("cache-size", "1073741825"), "1073741825");
  EXPECT_EQ(shown("cache-size", "1536MiB"), "1536MiB");
  EXPECT_EQ(shown("read-ahead", "0"), "0");
  EXPECT_EQ(shown("ttl", "1500ms"), "1500ms");
  EXPECT_EQ(shown("umask", "022"), "022");
  EXPECT_EQ(FindOption("uid")->show(options), "");
}

TEST(Options, AnEmptyListIsNone) {
  const ConfigFile file("ignore-query = []\n");
  EXPECT_TRUE(Parsed({"--config", file.path()}).ignore_query.empty());
}

TEST(Options, NoMount) {
  const auto parsed = ParseCommandLine({"--no-mount", "--cache-size", "1GiB"});
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_TRUE(parsed->options.no_mount);
  EXPECT_THAT(ErrorOf({kUrl, "/mnt", "--no-mount"}), HasSubstr("takes no SOURCE"));
  const ConfigFile file("no-mount = true\n");
  EXPECT_TRUE(ParseCommandLine({"--config", file.path()})->options.no_mount);
}

TEST(Options, WhatWasNamedIsKnown) {
  const ConfigFile file("ttl = \"5m\"\n");
  const auto parsed =
      ParseCommandLine({kUrl, "/mnt", "-f", "-o", "umask=0", "--config", file.path()});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->given,
              ElementsAre(FindOption("foreground"), FindOption("ttl"), FindOption("umask")));
}

TEST(Options, AsFlags) {
  for (const Value& row : kValues) {
    if (row.holds == nullptr) continue;
    std::vector<std::string> words = {std::string("--") + row.name};
    if (row.value != nullptr) words.emplace_back(row.value);
    EXPECT_TRUE(row.holds(Parsed(words))) << row.name;
  }
}

TEST(Options, AsMountOptions) {
  for (const Value& row : kValues) {
    if (row.holds == nullptr) continue;
    std::string word = row.name;
    std::replace(word.begin(), word.end(), '-', '_');
    if (row.value != nullptr) word += std::string("=") + row.value;
    EXPECT_TRUE(row.holds(Parsed({"-o", "rw," + word + ",noauto"}))) << word;
  }
}

TEST(Options, AsConfigFile) {
  for (const Value& row : kValues) {
    if (row.holds == nullptr) continue;
    const bool bare = row.value == nullptr;
    const ConfigFile file(std::string("# comment\n") + row.name + " = " +
                          (bare ? "true" : "\"" + std::string(row.value) + "\"") + "\n");
    EXPECT_TRUE(row.holds(Parsed({"--config", file.path()}))) << row.name;
  }
}

TEST(Options, CommandLineBeatsMountOptionsBeatFile) {
  const ConfigFile file("ttl = \"1s\"\nconnections = 2\ntimeout = \"3s\"\nimmutable = true\n");
  const Options options = Parsed({"--config", file.path(), "-o", "ttl=10s,connections=20", "--ttl",
                                  "100s", "-o", "immutable=false"});
  EXPECT_EQ(options.ttl, seconds(100));
  EXPECT_EQ(options.connections, 20u);
  EXPECT_EQ(options.timeout, core::Duration(seconds(3)));
  EXPECT_FALSE(options.immutable);
}

TEST(Options, ListsAddUpAtOnePlaceAndReplaceThoseBelow) {
  const ConfigFile file("ignore-query = [\"a\", \"b\"]\n");
  EXPECT_THAT(Parsed({"--config", file.path()}).ignore_query, ElementsAre("a", "b"));
  EXPECT_THAT(
      Parsed({"--config", file.path(), "--ignore-query", "c,d", "--ignore-query=e"}).ignore_query,
      ElementsAre("c", "d", "e"));
  EXPECT_THAT(Parsed({"-o", "ignore_query=x,ignore_query=y"}).ignore_query, ElementsAre("x", "y"));
}

TEST(Options, LogLevelGivenBesidesDebugHolds) {
  EXPECT_EQ(Parsed({"--log-level", "trace", "-d"}).log_level, "trace");
  EXPECT_EQ(Parsed({"-d"}).log_level, "debug");
}

TEST(Options, WordsOfMountAreAccepted) {
  const Options options = Parsed(
      {"-o",
       "rw,ro,dev,suid,nodev,nosuid,exec,auto,noauto,user,defaults,_netdev,nofail,nonempty,"
       "x-systemd.automount,x-systemd.idle-timeout=60,X-mount.mkdir,noatime,,sync,dirsync,"
       "nosymfollow,user=joe,mand,nomand,iversion,noiversion,auto_unmount,fsname=a,subtype=b,"
       "max_read=131072"});
  EXPECT_EQ(options.cache_size, Options().cache_size);
}

TEST(Options, BackslashEscapesAComma) {
  EXPECT_EQ(Parsed({"-o", R"(cache_dir=/a\,b\\c)"}).cache_dir, R"(/a,b\c)");
}

struct Wrong {
  std::vector<std::string> arguments;
  const char* says;
};

TEST(Options, ErrorsNameTheOptionAndWhatIsRight) {
  const Wrong rows[] = {
      {{}, "no SOURCE"},
      {{kUrl}, "no MOUNTPOINT"},
      {{kUrl, "/mnt", "/more"}, "'/more'"},
      {{"all", "/mnt"}, "SOURCE: 'all' is not the URL of a directory"},
      {{"catalog:images.tsv", "/mnt"}, "absolute path"},
      {{"ftp://h/", "/mnt"}, "http:// or https://"},
      {{"http:///x", "/mnt"}, "SOURCE"},
      {{kUrl, "/mnt", "--listening", "127.0.0.1:1"}, "unknown option '--listening'"},
      {{kUrl, "/mnt", "--cachesize=1G"}, "did you mean --cache-size?"},
      {{kUrl, "/mnt", "-o", "cache_sise=1G"}, "did you mean cache_size?"},
      {{kUrl, "/mnt", "-o", "frobnicate"}, "-o: unknown option 'frobnicate'"},
      {{kUrl, "/mnt", "-o", "ttl"}, "-o ttl: needs a value"},
      {{kUrl, "/mnt", "-o", "ttl="}, "-o ttl"},
      {{kUrl, "/mnt", "--cache-size", "ten"}, "--cache-size: 'ten'"},
      {{kUrl, "/mnt", "--cache-size", "1MiB"}, "from 16"},
      {{kUrl, "/mnt", "--cache-size"}, "--cache-size: 1 required SIZE missing"},
      {{kUrl, "/mnt", "--config"}, "FILE"},
      {{kUrl, "/mnt", "--config", "/tmp"}, "/tmp is a directory"},
      {{kUrl, "/mnt", "-o", "remount"}, "remount is not supported; unmount and mount again"},
      {{"http://h/?key=1", "/mnt"}, "query"},
      {{kUrl, "/mnt", "--connections", "0"}, "1 to 1024"},
      {{kUrl, "/mnt", "--connections", "-1"}, "1 to 1024"},
      {{kUrl, "/mnt", "--umask", "8"}, "octal"},
      {{kUrl, "/mnt", "--uid", "root"}, "expected a number"},
      {{kUrl, "/mnt", "--timeout", "0"}, "none"},
      {{kUrl, "/mnt", "--disk-io", "aio"}, "auto, uring or pool"},
      {{kUrl, "/mnt", "--passthrough", "on"}, "auto or off"},
      {{kUrl, "/mnt", "--fill", "most"}, "auto, off or all"},
      {{kUrl, "/mnt", "--log-level", "loud"}, "trace, debug"},
      {{kUrl, "/mnt", "--immutable=maybe"}, "immutable"},
      {{kUrl, "/mnt", "--namespace", "a\x1f"}, "--namespace"},
      {{kUrl, "/mnt", "--config", "/nonexistent/dartfs.toml"}, "/nonexistent/dartfs.toml"},
  };
  for (const Wrong& row : rows) {
    EXPECT_THAT(ErrorOf(row.arguments), HasSubstr(row.says))
        << testing::PrintToString(row.arguments);
  }
}

TEST(Options, ErrorsQuoteNoSecret) {
  EXPECT_THAT(ErrorOf({"ftp://user:pass@h/x?sig=abc", "/mnt"}),
              Not(testing::AnyOf(HasSubstr("pass"), HasSubstr("abc"))));
  EXPECT_THAT(ErrorOf({kUrl, "/mnt", "http://user:pass@h/"}), Not(HasSubstr("pass")));
  EXPECT_THAT(ErrorOf({"http://user:pass@/x", "/mnt"}), Not(HasSubstr("pass")));
}

TEST(Options, WrongConfigFiles) {
  const std::pair<const char*, const char*> rows[] = {
      {"cache-sise = 1\n", "unknown key 'cache-sise'; did you mean cache-size?"},
      {"[cache]\nsize = 1\n", "no tables here: [cache]"},
      {"ttl = \"1s\"\nttl = \"2s\"\n", "'ttl' needs one value"},
      {"ttl = \"5\n", "ttl"},
      {"connections = [1, 2]\n", "needs one value"},
      {"cache-size = many\n", "cache-size: 'many'"},
      {"listening = \"127.0.0.1:8145\"\n", "unknown key 'listening'"},
  };
  for (const auto& [text, says] : rows) {
    const ConfigFile file(text);
    const std::string error = ErrorOf({kUrl, "/mnt", "--config", file.path()});
    EXPECT_THAT(error, HasSubstr(says)) << text;
    EXPECT_THAT(error, HasSubstr(file.path())) << text;
  }
}

TEST(Options, Actions) {
  EXPECT_EQ(ParseCommandLine({"--help"})->action, Action::kHelp);
  EXPECT_EQ(ParseCommandLine({"-V"})->action, Action::kVersion);
  EXPECT_EQ(ParseCommandLine({"--check-config"})->action, Action::kCheckConfig);
  EXPECT_FALSE(ParseCommandLine({"--check-config", "-o", "ttl=x"}));
  EXPECT_FALSE(ParseCommandLine({"--check-config", "all", "/mnt"}));
  EXPECT_FALSE(ParseCommandLine({"--check-config", "http://h/?q", "/mnt"}));
}

TEST(Options, HelpNamesEveryOption) {
  const std::string help = HelpText();
  for (const OptionRow& row : OptionTable()) {
    EXPECT_THAT(help, HasSubstr("--" + std::string(row.name)));
  }
}

TEST(Defaults, CacheDirectory) {
  EXPECT_EQ(*DefaultCacheDir({.uid = 0, .home = "/root"}), "/var/cache/dartfs");
  EXPECT_EQ(*DefaultCacheDir({.uid = 7, .home = "/home/u"}), "/home/u/.cache/dartfs");
  EXPECT_EQ(*DefaultCacheDir({.uid = 7, .home = "/home/u", .xdg_cache_home = "/x"}), "/x/dartfs");
  EXPECT_EQ(*DefaultCacheDir({.uid = 7, .home = "/home/u", .xdg_cache_home = "x"}),
            "/home/u/.cache/dartfs");
  EXPECT_FALSE(DefaultCacheDir({.uid = 7}));
}

TEST(Defaults, InflightMemoryFollowsTheLimit) {
  const std::pair<std::optional<uint64_t>, uint64_t> rows[] = {
      {std::nullopt, uint64_t{256} << 20},
      {uint64_t{64} << 30, uint64_t{256} << 20},
      {uint64_t{512} << 20, uint64_t{64} << 20},
      {uint64_t{8} << 20, uint64_t{16} << 20},  // never less than a few blocks
  };
  for (const auto& [limit, inflight] : rows) {
    Options options;
    ASSERT_TRUE(ResolveDefaults(options, {.working_dir = "/w", .memory_limit = limit}));
    EXPECT_EQ(options.inflight, inflight);
  }
}

TEST(Defaults, PathsBecomeAbsolute) {
  Options options = Parsed({"--cache-dir", "c", "--log-file", "/l", "--pid-file", "p/q",
                            "--access-log", "a", "--registry-auth", "r.json"});
  options.mountpoint = "m";
  ASSERT_TRUE(ResolveDefaults(options, {.working_dir = "/w"}));
  EXPECT_EQ(options.cache_dir, "/w/c");
  EXPECT_EQ(options.log_file, "/l");
  EXPECT_EQ(options.pid_file, "/w/p/q");
  EXPECT_EQ(options.mountpoint, "/w/m");
  EXPECT_EQ(options.access_log, "/w/a");
  EXPECT_EQ(options.registry_auth, "/w/r.json");
  EXPECT_EQ(options.ca_file, "");
}

}  // namespace
}  // namespace dartfs::app
