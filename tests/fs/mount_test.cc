#include "fs/mount.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <vector>

#include "fs/fuse_mount.h"
#include "fs/mount_fixture.h"
#include "fs/mount_info.h"

namespace dartfs::fs {
namespace {

constexpr uint64_t kMiB = 1 << 20;
using std::chrono::milliseconds;

TEST_F(MountTest, ReadsFilesWhole) {
  tree_->AddFile("/a", {.size = 3 * kMiB + 17, .seed = 1});
  tree_->AddFile("/empty", {.size = 0});
  tree_->AddDir("/sub/");
  tree_->AddFile("/sub/b", {.size = 5, .seed = 2});
  Mounted();
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
  EXPECT_EQ(ReadAll(Path("empty")), "");
  EXPECT_EQ(ReadAll(Path("sub/b")), Pattern(2, 0, 5));
}

TEST_F(MountTest, ReadsThatHaveToWait) {
  engine_.in_memory = false;
  tree_->AddFile("/a", {.size = 2 * kMiB + 5, .seed = 3});
  Mounted();
  EXPECT_EQ(ReadAll(Path("a")), Pattern(3, 0, 2 * kMiB + 5));
  EXPECT_GT(Requests("read_deferred"), 0u);
}

TEST_F(MountTest, PreadAtAndBehindTheEnd) {
  tree_->AddFile("/a", {.size = 10000, .seed = 4});
  Mounted();
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  ASSERT_TRUE(fd.valid());
  std::string buffer(4096, 'x');
  EXPECT_EQ(pread(fd.get(), buffer.data(), 4096, 9000), 1000);
  EXPECT_EQ(buffer.substr(0, 1000), Pattern(4, 9000, 1000));
  EXPECT_EQ(pread(fd.get(), buffer.data(), 4096, 10000), 0);
  EXPECT_EQ(pread(fd.get(), buffer.data(), 4096, 1 << 30), 0);
}

TEST_F(MountTest, DirectReads) {
  tree_->AddFile("/a", {.size = 10000, .seed = 4});
  Mounted();
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY | O_DIRECT));
  ASSERT_TRUE(fd.valid());
  alignas(4096) static char buffer[8192];
  EXPECT_EQ(pread(fd.get(), buffer, sizeof buffer, 4096), 5904);
  EXPECT_EQ(std::string(buffer, 5904), Pattern(4, 4096, 5904));
}

TEST_F(MountTest, MapsFiles) {
  engine_.in_memory = false;
  tree_->AddFile("/a", {.size = kMiB, .seed = 5});
  Mounted();
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  void* const map = mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  EXPECT_EQ(std::string(static_cast<const char*>(map), kMiB), Pattern(5, 0, kMiB));
  munmap(map, kMiB);
}

// Passthrough: real, where the kernel has it.
class PassthroughTest : public MountTest {
 protected:
  void SetUp() override {
    MountTest::SetUp();
    if (IsSkipped()) return;
    engine_.lends = true;
    tree_->AddFile("/a", {.size = 3 * kMiB + 17, .seed = 1});
    Mounted();
    if (mount_->Stats().passthrough == "on") return;
    std::fprintf(stderr, "SKIPPED: no passthrough here: %s\n", mount_->Stats().passthrough.c_str());
    GTEST_SKIP();
  }
};

TEST_F(PassthroughTest, TheKernelReadsLentFilesByItself) {
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
  EXPECT_EQ(Requests("read") + Requests("read_deferred"), 0u);
  EXPECT_EQ(mount_->Stats().passthrough_opens, 1u);
}

TEST_F(PassthroughTest, MapsAndDirectReadsOfLentFiles) {
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  void* const map = mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  EXPECT_EQ(std::string(static_cast<const char*>(map), kMiB), Pattern(1, 0, kMiB));
  munmap(map, kMiB);
  EXPECT_EQ(Requests("read") + Requests("read_deferred"), 0u);
}

TEST_F(PassthroughTest, AFileOpenThroughTheDaemonStaysSoForAll) {
  engine_.lends = false;
  const core::UniqueFd first(open(Path("a").c_str(), O_RDONLY));
  engine_.lends = true;
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
  EXPECT_GT(Requests("read"), 0u);
  EXPECT_EQ(mount_->Stats().passthrough_opens, 0u);
}

TEST_F(PassthroughTest, ALentFileStaysSoForAllAndIsGivenBack) {
  {
    const core::UniqueFd first(open(Path("a").c_str(), O_RDONLY));
    engine_.lends = false;
    EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
    EXPECT_EQ(mount_->Stats().passthrough_opens, 2u);
    EXPECT_EQ(engine_.loans, 1);
  }
  // RELEASE comes after close(2) has returned.
  for (int i = 0; i < 1000 && engine_.loans > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(engine_.loans, 0);
  EXPECT_EQ(mount_->Stats().passthrough_nodes, 0u);
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
  EXPECT_GT(Requests("read"), 0u);
}

// A new open of a file found damaged is another node, which the daemon reads.
TEST_F(PassthroughTest, ADamagedFileIsOpenedAnew) {
  const core::UniqueFd first(open(Path("a").c_str(), O_RDONLY));
  ASSERT_EQ(mount_->Stats().passthrough_opens, 1u);
  *engine_.broken = true;
  engine_.lends = false;
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, 3 * kMiB + 17));
  EXPECT_GT(Requests("read"), 0u);
  EXPECT_EQ(mount_->Stats().passthrough_opens, 1u);
}

TEST_F(PassthroughTest, TheEndOfTheMountGivesBackWhatIsOpen) {
  const core::UniqueFd fd(open(Path("a").c_str(), O_RDONLY));
  mount_.reset();
  EXPECT_EQ(engine_.loans, 0);
}

TEST_F(MountTest, PassthroughCanBeSwitchedOff) {
  engine_.lends = true;
  tree_->AddFile("/a", {.size = kMiB, .seed = 1});
  MountOptions options = Options();
  options.passthrough = false;
  Mounted(std::move(options));
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, kMiB));
  EXPECT_GT(Requests("read"), 0u);
  EXPECT_NE(mount_->Stats().passthrough.find("switched off"), std::string::npos);
}

TEST_F(MountTest, WithoutAPlaceToProbePassthroughIsOffAndSaysWhy) {
  engine_.lends = true;
  tree_->AddFile("/a", {.size = kMiB, .seed = 1});
  MountOptions options = Options();
  options.probe_file = "/nowhere/at-all";
  Mounted(std::move(options));
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, kMiB));
  EXPECT_NE(mount_->Stats().passthrough, "on");
  EXPECT_GT(Requests("read"), 0u);
}

TEST_F(MountTest, Attributes) {
  tree_->AddFile("/a", {.size = 1025, .last_modified = 1234567890});
  tree_->AddDir("/sub/");
  MountOptions options = Options();
  options.uid = 12;
  options.gid = 34;
  options.umask = 04;
  Mounted(std::move(options));
  struct stat st {};
  ASSERT_EQ(stat(Path("a").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFREG | 0440));
  EXPECT_EQ(st.st_size, 1025);
  EXPECT_EQ(st.st_blocks, 3);
  EXPECT_EQ(st.st_nlink, 1u);
  EXPECT_EQ(st.st_mtime, 1234567890);
  EXPECT_EQ(st.st_uid, 12u);
  EXPECT_EQ(st.st_gid, 34u);
  ASSERT_EQ(stat(Path("sub").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFDIR | 0551));
  EXPECT_EQ(st.st_nlink, 2u);
  EXPECT_EQ(stat(Path("nothing").c_str(), &st), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(stat(Path(std::string(300, 'n')).c_str(), &st), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST_F(MountTest, LongNamesReachTheNamespace) {
  const std::string presigned = "a.img%3FX-Amz-Signature=" + std::string(576, 's');
  ASSERT_EQ(presigned.size(), 600u);
  tree_->AddFile("/" + presigned, {.size = 5, .seed = 2});
  Mounted();
  EXPECT_EQ(ReadAll(Path(presigned)), Pattern(2, 0, 5));
  struct stat st {};
  EXPECT_EQ(stat(Path("b.img%3F" + std::string(1016, 's')).c_str(), &st), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(stat(Path("b.img%3F" + std::string(1017, 's')).c_str(), &st), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST_F(MountTest, ShowsItselfInTheMountTable) {
  Mounted();
  const auto top = TopMountAt(ReadMountInfo(), dir_);
  ASSERT_TRUE(top);
  EXPECT_EQ(top->type, "fuse.dartfs");
  EXPECT_EQ(top->source.find("secret"), std::string::npos) << top->source;
  EXPECT_NE(top->source.find("http://h/"), std::string::npos) << top->source;
  struct statvfs vfs {};
  ASSERT_EQ(statvfs(dir_.c_str(), &vfs), 0);
  EXPECT_TRUE(vfs.f_flag & ST_RDONLY);
  EXPECT_TRUE(vfs.f_flag & ST_NOSUID);
  EXPECT_TRUE(vfs.f_flag & ST_NODEV);
  EXPECT_EQ(vfs.f_blocks * vfs.f_frsize, uint64_t{10} << 30);
  EXPECT_EQ(vfs.f_bavail * vfs.f_frsize, uint64_t{9} << 30);
  struct stat st {};
  ASSERT_EQ(stat(dir_.c_str(), &st), 0);
  std::ifstream bdi("/sys/class/bdi/" + std::to_string(major(st.st_dev)) + ":" +
                    std::to_string(minor(st.st_dev)) + "/read_ahead_kb");
  unsigned kib = 0;
  bdi >> kib;
  EXPECT_EQ(kib, 4096u);
}

TEST_F(MountTest, RefusesToWrite) {
  tree_->AddFile("/a", {.size = 10});
  Mounted();
  EXPECT_EQ(open(Path("a").c_str(), O_WRONLY), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(open(Path("new").c_str(), O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(mkdir(Path("d").c_str(), 0755), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(unlink(Path("a").c_str()), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(truncate(Path("a").c_str(), 0), -1);
  EXPECT_EQ(errno, EROFS);
}

TEST_F(MountTest, RefusesToWriteAlsoWhenRemounted) {
  tree_->AddFile("/a", {.size = 10});
  Mounted();
  ASSERT_EQ(::mount(nullptr, dir_.c_str(), nullptr, MS_REMOUNT, nullptr), 0);
  EXPECT_EQ(open(Path("a").c_str(), O_WRONLY), -1);
  EXPECT_TRUE(errno == EROFS || errno == EACCES) << errno;
  EXPECT_EQ(mkdir(Path("d").c_str(), 0755), -1);
  EXPECT_EQ(errno, EROFS);
}

TEST_F(MountTest, ListsAllOfALargeDirectory) {
  constexpr int kEntries = 50000;
  tree_->AddDir("/big/");
  for (int i = 0; i < kEntries; ++i) tree_->AddListedName("/big/", "file-" + std::to_string(i));
  Mounted();
  std::set<std::string> seen;
  DIR* const dir = opendir(Path("big").c_str());
  ASSERT_NE(dir, nullptr);
  while (const dirent* entry = readdir(dir)) {
    EXPECT_TRUE(seen.insert(entry->d_name).second) << entry->d_name;
    if (entry->d_name[0] == 'f') {
      ASSERT_EQ(entry->d_type, DT_REG);
    }
  }
  closedir(dir);
  EXPECT_EQ(seen.size(), kEntries + 2u);
  EXPECT_EQ(tree_->lookup_count, 1);  // of the directory itself
  EXPECT_EQ(tree_->list_count, 1);
}

TEST_F(MountTest, DirectoryOffsetsAreStable) {
  for (int i = 0; i < 1000; ++i) tree_->AddListedName("/", "file-" + std::to_string(i));
  Mounted();
  DIR* const dir = opendir(dir_.c_str());
  ASSERT_NE(dir, nullptr);
  for (int i = 0; i < 500; ++i) readdir(dir);
  const long at = telldir(dir);
  const std::string next = readdir(dir)->d_name;
  while (readdir(dir) != nullptr) {
  }
  tree_->AddListedName("/", "aaa");  // not in the listing this handle began with
  seekdir(dir, at);
  EXPECT_EQ(readdir(dir)->d_name, next);
  closedir(dir);
}

TEST_F(MountTest, KnownAttributesComeWithTheListing) {
  for (int i = 0; i < 20; ++i) {
    tree_->AddFile("/f" + std::to_string(i), {.size = 100}, /*opened=*/true);
  }
  Mounted();
  DIR* const dir = opendir(dir_.c_str());
  int files = 0;
  while (const dirent* entry = readdir(dir)) {
    struct stat st {};
    if (entry->d_name[0] == '.') continue;  // ".." leads out of the mount
    ASSERT_EQ(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
    EXPECT_EQ(st.st_ino, entry->d_ino) << entry->d_name;
    if (S_ISREG(st.st_mode)) ++files;
  }
  closedir(dir);
  EXPECT_EQ(files, 20);
  EXPECT_EQ(tree_->lookup_count, 0);
}

TEST_F(MountTest, AWalkOverAListingProbesAheadOnce) {
  for (int i = 0; i < 20; ++i) tree_->AddFile("/f" + std::to_string(i), {.size = 100});
  Mounted();
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    EXPECT_EQ(entry.file_size(), 100u);
  }
  EXPECT_EQ(tree_->probes, 1);
}

TEST_F(MountTest, ExtendedAttributes) {
  tree_->AddFile("/a", {.size = 77, .version = "e:\"v1\""});
  Mounted();
  const std::string path = Path("a");
  char value[256];
  ssize_t length = getxattr(path.c_str(), "user.dartfs.url", value, sizeof value);
  ASSERT_GT(length, 0);
  EXPECT_EQ(std::string(value, static_cast<size_t>(length)), "http://h/a");
  length = getxattr(path.c_str(), "user.dartfs.version", value, sizeof value);
  EXPECT_EQ(std::string(value, static_cast<size_t>(length)), "e:\"v1\"");
  length = getxattr(path.c_str(), "user.dartfs.cached_bytes", value, sizeof value);
  EXPECT_EQ(std::string(value, static_cast<size_t>(length)), "0");
  EXPECT_EQ(getxattr(path.c_str(), "user.dartfs.url", value, 2), -1);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(getxattr(path.c_str(), "security.capability", value, sizeof value), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(getxattr(path.c_str(), "system.posix_acl_access", value, sizeof value), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  length = listxattr(path.c_str(), value, sizeof value);
  ASSERT_GT(length, 0);
  EXPECT_NE(std::string(value, static_cast<size_t>(length)).find("user.dartfs.size"),
            std::string::npos);
}

TEST_F(MountTest, InodeNumbersSurviveARemount) {
  tree_->AddDir("/sub/");
  tree_->AddFile("/sub/a", {.size = 1});
  Mounted();
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(Path("sub/a").c_str(), &before), 0);
  mount_.reset();
  tree_owned_ = std::make_unique<MemoryNamespace>(engine_);
  tree_ = tree_owned_.get();
  tree_->AddFile("/other", {.size = 1});
  tree_->AddDir("/sub/");
  tree_->AddFile("/sub/a", {.size = 1});
  Mounted();
  ASSERT_EQ(stat(Path("other").c_str(), &after), 0);
  ASSERT_EQ(stat(Path("sub/a").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(MountTest, ANewVersionIsSeenByANewOpenOnly) {
  tree_->AddFile("/a", {.size = 8192, .seed = 1, .version = "e:1"});
  Mounted();
  const core::UniqueFd old(open(Path("a").c_str(), O_RDONLY));
  ASSERT_TRUE(old.valid());
  struct stat before {
  }, after{};
  fstat(old.get(), &before);
  tree_->AddFile("/a", {.size = 8192, .seed = 2, .version = "e:2"});
  // The kernel still trusts the name: the open is answered ESTALE, and looked up again by itself.
  EXPECT_EQ(ReadAll(Path("a")), Pattern(2, 0, 8192));
  std::string buffer(8192, 'x');
  EXPECT_EQ(pread(old.get(), buffer.data(), 8192, 0), 8192);
  EXPECT_EQ(buffer, Pattern(1, 0, 8192));
  stat(Path("a").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(MountTest, PagesOfAVersionAreKeptOverOpens) {
  tree_->AddFile("/a", {.size = kMiB, .seed = 1});
  Mounted();
  ReadAll(Path("a"));
  const uint64_t reads = Requests("read");
  EXPECT_EQ(ReadAll(Path("a")), Pattern(1, 0, kMiB));
  EXPECT_EQ(Requests("read"), reads);
}

// The kernel's own file systems, and the root: whoever covers them takes them from the machine.
TEST(Mountpoint, SystemPlacesAreRefused) {
  for (const char* path :
       {"/", "/proc", "/proc/self", "/sys", "/dev", "/dev/pts", "/proc/../proc"}) {
    if (access(path, F_OK) != 0) continue;
    const auto checked = CheckMountpoint(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().code, core::Code::kInvalidArgument) << path;
    EXPECT_FALSE(PrepareMountpoint(path)) << path;
  }
  EXPECT_TRUE(CheckMountpoint("/tmp"));
  EXPECT_FALSE(CheckMountpoint("/nonexistent"));
}

TEST_F(MountTest, TellsWhatItMounted) {
  dev_t told = 0;
  MountOptions options = Options();
  options.on_mounted = [&](const std::string& mountpoint, dev_t device) {
    EXPECT_EQ(mountpoint, dir_);
    told = device;
  };
  Mounted(std::move(options));
  struct stat st {};
  ASSERT_EQ(stat(dir_.c_str(), &st), 0);
  EXPECT_EQ(told, st.st_dev);
}

}  // namespace
}  // namespace dartfs::fs
