#include "app/cgroup.h"

#include <gtest/gtest.h>

#include <map>

namespace dartfs::app {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<uint64_t> LimitOf(const Files& files) {
  return CgroupMemoryLimit([&files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

struct Row {
  const char* name;
  Files files;
  std::optional<uint64_t> limit;
};

TEST(Cgroup, Limits) {
  const Row rows[] = {
      {"no cgroups", {}, std::nullopt},
      {"v2, own limit",
       {{"/proc/self/cgroup", "0::/system.slice/a.service\n"},
        {"/sys/fs/cgroup/system.slice/a.service/memory.max", "536870912\n"}},
       536870912},
      {"v2, the parent's is lower",
       {{"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
        {"/sys/fs/cgroup/a/memory.max", "1000\n"}},
       1000},
      {"v2, none",
       {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/memory.max", "max\n"}},
       std::nullopt},
      {"v2, a container's own tree",
       {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "2000\n"}},
       2000},
      {"v1 among others",
       {{"/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/0a\n1:name=systemd:/x\n"},
        {"/sys/fs/cgroup/memory/docker/0a/memory.limit_in_bytes", "3000\n"}},
       3000},
      {"v1, the path is the host's, the tree the container's",
       {{"/proc/self/cgroup", "5:memory:/docker/0a\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n"}},
       4000},
      {"v1, unlimited",
       {{"/proc/self/cgroup", "5:memory:/\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
       std::nullopt},
      {"both versions",
       {{"/proc/self/cgroup", "5:memory:/m\n0::/u\n"},
        {"/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "5000\n"},
        {"/sys/fs/cgroup/u/memory.max", "6000\n"}},
       5000},
      {"rubbish", {{"/proc/self/cgroup", "memory\n::\n0:\n\n"}}, std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(LimitOf(row.files), row.limit) << row.name;
}

TEST(Cgroup, ReadsThisProcessWithoutFailing) {
  EXPECT_TRUE(ReadSmallFile("/proc/self/stat"));
  EXPECT_FALSE(ReadSmallFile("/nonexistent/file"));
  CgroupMemoryLimit(ReadSmallFile);
}

}  // namespace
}  // namespace dartfs::app
