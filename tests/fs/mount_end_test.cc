// How waits and mounts end: signals, unmounts, dead mounts.
#include <sys/mman.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <vector>

#include "fs/fuse_mount.h"
#include "fs/mount_fixture.h"
#include "fs/mount_info.h"

namespace dartfs::fs {
namespace {

constexpr uint64_t kMiB = 1 << 20;
using std::chrono::milliseconds;
constexpr milliseconds kSecond(1000);
constexpr milliseconds kLong(10000);

// What a reader does in the child; 0 when it got what it wanted, else the errno.
int ReadStart(const std::string& path, int flags = 0) {
  const int fd = open(path.c_str(), O_RDONLY | flags);
  if (fd < 0) return errno;
  alignas(4096) static char buffer[4096];
  return read(fd, buffer, sizeof buffer) == sizeof buffer ? 0 : errno;
}

int Stat(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? 0 : errno;
}

int MapStart(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  const void* const map = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  return static_cast<const volatile char*>(map)[0] == 0 ? 0 : 1;
}

enum class Stalled { kLookup, kRead, kDirectRead, kMap };

struct KillCase {
  const char* name;
  Stalled what;
  int signal;
};

class KilledReader : public MountTest, public ::testing::WithParamInterface<KillCase> {};

TEST_P(KilledReader, IsGoneWithinASecond) {
  tree_->AddFile("/a", {.size = kMiB, .seed = 1});
  engine_.in_memory = false;
  Mounted();
  Gate& gate = GetParam().what == Stalled::kLookup ? tree_->lookups : engine_.reads;
  gate.Close();
  const pid_t child = InChild([&] {
    signal(GetParam().signal, SIG_DFL);
    switch (GetParam().what) {
      case Stalled::kLookup:
        return Stat(Path("a"));
      case Stalled::kRead:
        return ReadStart(Path("a"));
      case Stalled::kDirectRead:
        return ReadStart(Path("a"), O_DIRECT);
      case Stalled::kMap:
        return MapStart(Path("a"));
    }
    return 1;
  });
  ASSERT_TRUE(gate.AwaitWaiting(1));
  std::this_thread::sleep_for(milliseconds(20));  // into the kernel's wait
  kill(child, GetParam().signal);
  int status = 0;
  ASSERT_TRUE(Gone(child, kSecond, &status));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam().signal);
  gate.Open();
  EXPECT_EQ(Stat(Path("a")), 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, KilledReader,
                         ::testing::Values(KillCase{"LookupKill", Stalled::kLookup, SIGKILL},
                                           KillCase{"LookupInt", Stalled::kLookup, SIGINT},
                                           KillCase{"ReadKill", Stalled::kRead, SIGKILL},
                                           KillCase{"ReadInt", Stalled::kRead, SIGINT},
                                           KillCase{"DirectReadKill", Stalled::kDirectRead,
                                                    SIGKILL},
                                           KillCase{"DirectReadInt", Stalled::kDirectRead, SIGINT},
                                           KillCase{"MapKill", Stalled::kMap, SIGKILL}),
                         [](const auto& test) { return test.param.name; });

TEST_F(MountTest, AHandledSignalDoesNotEndAWait) {
  tree_->AddFile("/a", {.size = 10});
  Mounted();
  tree_->lookups.Close();
  const pid_t child = InChild([&] {
    signal(SIGUSR1, [](int) {});
    return Stat(Path("a"));
  });
  ASSERT_TRUE(tree_->lookups.AwaitWaiting(1));
  std::this_thread::sleep_for(milliseconds(20));
  kill(child, SIGUSR1);
  EXPECT_FALSE(Gone(child, milliseconds(300)));
  EXPECT_GE(Requests("interrupt"), 1u);
  tree_->lookups.Open();
  int status = 0;
  ASSERT_TRUE(Gone(child, kLong, &status));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(MountTest, ASecondFatalSignalEndsAWaitThatAHandledOneDidNot) {
  Mounted();
  tree_->lookups.Close();
  const pid_t child = InChild([&] {
    signal(SIGUSR1, [](int) {});
    return Stat(Path("a"));
  });
  ASSERT_TRUE(tree_->lookups.AwaitWaiting(1));
  std::this_thread::sleep_for(milliseconds(20));
  kill(child, SIGUSR1);
  EXPECT_FALSE(Gone(child, milliseconds(200)));
  kill(child, SIGKILL);
  EXPECT_TRUE(Gone(child, kSecond));
}

TEST_F(MountTest, ManyStalledReadersHinderNobody) {
  constexpr int kReaders = 24;
  for (int i = 0; i < kReaders; ++i) {
    tree_->AddFile("/stalled" + std::to_string(i), {.size = kMiB, .seed = 1});
  }
  tree_->AddFile("/healthy", {.size = kMiB, .seed = 2});
  Mounted();
  engine_.in_memory = false;
  engine_.reads.Close();
  std::vector<pid_t> children;
  for (int i = 0; i < kReaders; ++i) {
    children.push_back(InChild([&] { return ReadStart(Path("stalled" + std::to_string(i))); }));
  }
  ASSERT_TRUE(engine_.reads.AwaitWaiting(kReaders));
  engine_.in_memory = true;
  EXPECT_EQ(ReadAll(Path("healthy")), Pattern(2, 0, kMiB));
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) EXPECT_TRUE(Gone(child, kSecond));
  // The only sign of their end: their files' FLUSH.
  for (int i = 0; i < 200 && engine_.lowered < kReaders; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(engine_.lowered, kReaders);
}

TEST_F(MountTest, KilledLookupsOfOneNameAndOfMany) {
  Mounted();
  tree_->lookups.Close();
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i) {
    const std::string name = i < 8 ? "same" : "other" + std::to_string(i);
    children.push_back(InChild([&] { return Stat(Path(name)); }));
  }
  // One of those that want the same name asks for all; names apart do not wait for each other.
  ASSERT_TRUE(tree_->lookups.AwaitWaiting(9));
  std::this_thread::sleep_for(milliseconds(50));
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) EXPECT_TRUE(Gone(child, kSecond));
}

TEST_F(MountTest, AClosedDuplicateFailsNoRead) {
  tree_->AddFile("/a", {.size = kMiB, .seed = 6});
  engine_.in_memory = false;
  Mounted();
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  engine_.reads.Close();
  std::string buffer(kMiB, 'x');
  ssize_t got = -1;
  std::thread reader([&] { got = pread(fd.get(), buffer.data(), buffer.size(), 0); });
  ASSERT_TRUE(engine_.reads.AwaitWaiting(1));
  close(dup(fd.get()));  // a FLUSH
  EXPECT_GE(engine_.lowered, 1);
  engine_.reads.Open();
  reader.join();
  EXPECT_EQ(got, static_cast<ssize_t>(kMiB));
  EXPECT_EQ(buffer, Pattern(6, 0, kMiB));
}

TEST_F(MountTest, AnErrorOfTheSourceBecomesAnErrno) {
  tree_->AddFile("/a", {.size = kMiB});
  engine_.in_memory = false;
  Mounted();
  engine_.reads.Close();
  int result = 0;
  std::thread reader([&] { result = ReadStart(Path("a")); });
  ASSERT_TRUE(engine_.reads.AwaitWaiting(1));
  engine_.reads.CancelAll();
  // The kernel asks once more for the page that its read-ahead did not get.
  ASSERT_TRUE(engine_.reads.AwaitWaiting(1));
  engine_.reads.CancelAll();
  reader.join();
  EXPECT_EQ(result, EINTR);
}

TEST_F(MountTest, UnmountFromOutsideEndsIt) {
  Mounted();
  EXPECT_FALSE(mount_->WaitFor(milliseconds(0)));
  ASSERT_EQ(umount2(dir_.c_str(), 0), 0);
  EXPECT_TRUE(mount_->WaitFor(kLong));
  mount_->Stop();
}

TEST_F(MountTest, StopUnmounts) {
  tree_->AddFile("/a", {.size = 10});
  Mounted();
  ReadAll(Path("a"));
  mount_->Stop();
  EXPECT_FALSE(TopMountAt(ReadMountInfo(), dir_));
  EXPECT_TRUE(mount_->WaitFor(milliseconds(0)));
  mount_->Stop();
  EXPECT_EQ(engine_.readers, 0);
}

TEST_F(MountTest, StopDetachesABusyMountAndAnswersWhoWaits) {
  tree_->AddFile("/a", {.size = kMiB});
  engine_.in_memory = false;
  Mounted();
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  ASSERT_TRUE(fd.valid());
  engine_.reads.Close();
  const pid_t child = InChild([&] { return ReadStart(Path("a")); });
  ASSERT_TRUE(engine_.reads.AwaitWaiting(1));
  mount_->Stop();
  EXPECT_FALSE(TopMountAt(ReadMountInfo(), dir_));
  int status = 0;
  ASSERT_TRUE(Gone(child, kLong, &status));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), 0);
  char byte;
  EXPECT_EQ(pread(fd.get(), &byte, 1, 0), -1);
  EXPECT_EQ(engine_.readers, 0);
  EXPECT_EQ(engine_.reads.waiting(), 0u);
}

TEST_F(MountTest, EndsWithALookupStillUnderWay) {
  Mounted();
  tree_->lookups.Close();
  const pid_t child = InChild([&] { return Stat(Path("a")); });
  ASSERT_TRUE(tree_->lookups.AwaitWaiting(1));
  mount_.reset();
  int status = 0;
  ASSERT_TRUE(Gone(child, kLong, &status));
  EXPECT_EQ(WEXITSTATUS(status), EIO);
  tree_->lookups.Open();  // its completion still finds a file system
  tree_ = nullptr;
}

void LeaveDeadMount(const std::string& dir) {
  auto device = MountFuse({.mountpoint = dir, .source = "dead", .allow_other = false});
  ASSERT_TRUE(device.has_value()) << device.error().ToString();
}

TEST_F(MountTest, ReplacesADeadMount) {
  LeaveDeadMount(dir_);
  ASSERT_EQ(Stat(dir_), ENOTCONN);
  tree_->AddFile("/a", {.size = 10, .seed = 9});
  Mounted();
  EXPECT_EQ(ReadAll(Path("a")), Pattern(9, 0, 10));
  mount_->Stop();
  EXPECT_FALSE(TopMountAt(ReadMountInfo(), dir_));
}

TEST_F(MountTest, ALiveMountIsRefused) {
  tree_->AddFile("/a", {.size = 10, .seed = 9});
  Mounted();
  auto second = Mount::Create(Options(), std::make_unique<MemoryNamespace>(engine_), engine_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, core::Code::kBusy);
  EXPECT_NE(second.error().context.find("live dartfs mount"), std::string::npos);
  EXPECT_EQ(second.error().context.find("secret"), std::string::npos);
  EXPECT_EQ(ReadAll(Path("a")), Pattern(9, 0, 10));
}

TEST_F(MountTest, BadMountpointsAreSaidSo) {
  const std::string file = Path("file");
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0644));
  const struct {
    std::string mountpoint;
    const char* says;
  } cases[] = {
      {Path("missing"), "create it first"}, {file, "not a directory"}, {"", "No such file"}};
  for (const auto& test : cases) {
    MountOptions options = Options();
    options.mountpoint = test.mountpoint;
    auto mount =
        Mount::Create(std::move(options), std::make_unique<MemoryNamespace>(engine_), engine_);
    ASSERT_FALSE(mount.has_value()) << test.mountpoint;
    EXPECT_NE(mount.error().context.find(test.says), std::string::npos) << mount.error().ToString();
  }
  unlink(file.c_str());
}

TEST_F(MountTest, MountpointsThroughLinksAndRelativePaths) {
  const std::string link = dir_ + ".link";
  ASSERT_EQ(symlink(dir_.c_str(), link.c_str()), 0);
  MountOptions options = Options();
  options.mountpoint = link + "/";
  tree_->AddFile("/a", {.size = 10, .seed = 9});
  Mounted(std::move(options));
  EXPECT_EQ(mount_->mountpoint(), dir_);
  EXPECT_EQ(ReadAll(Path("a")), Pattern(9, 0, 10));
  unlink(link.c_str());
}

int OpenDescriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

TEST_F(MountTest, LeaksNoDescriptor) {
  Mounted();
  mount_.reset();
  const int before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    tree_owned_ = std::make_unique<MemoryNamespace>(engine_);
    tree_ = tree_owned_.get();
    tree_->AddFile("/a", {.size = 10});
    Mounted();
    ReadAll(Path("a"));
    mount_.reset();
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace dartfs::fs
