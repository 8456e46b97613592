#include "fs/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fake/manual_scheduler.h"
#include "fs/memory_engine.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The answer of one request, once there.
template <typename T>
class Answer {
 public:
  Reply<T> reply() {
    return Reply<T>([this](Result<T> result) {
      EXPECT_FALSE(result_.has_value()) << "answered twice";
      result_.emplace(std::move(result));
      return delivered;
    });
  }
  bool there() const { return result_.has_value(); }
  const T& value() { return result_->value(); }
  Code error() const { return result_->error().code; }
  bool ok() const { return there() && result_->has_value(); }
  bool delivered = true;

 private:
  std::optional<Result<T>> result_;
};

// Collects entries; takes `room` of them at a time.
class Page final : public DirWriter {
 public:
  explicit Page(size_t room) : room_(room) {}
  bool Fits(std::string_view) override { return entries.size() < room_; }
  void Add(const DirEntry& entry) override {
    entries.push_back(entry);
    names.emplace_back(entry.name);
  }
  std::vector<DirEntry> entries;
  std::vector<std::string> names;

 private:
  const size_t room_;
};

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystemTest() {
    auto names = std::make_unique<MemoryNamespace>(engine_);
    tree_ = names.get();
    FileSystemOptions options;
    options.timeout = seconds(60);
    fs_ = std::make_unique<FileSystem>(options, std::move(names), engine_);
  }
  ~FileSystemTest() override {
    tree_->lookups.Open();
    engine_.reads.Open();
  }

  Entry Lookup(const std::string& name, NodeId parent = kRootNode) {
    Answer<Entry> answer;
    fs_->Lookup(parent, name, answer.reply());
    EXPECT_TRUE(answer.ok());
    return answer.value();
  }
  HandleId Open(NodeId node) {
    Answer<OpenedFile> answer;
    fs_->Open(node, answer.reply());
    EXPECT_TRUE(answer.ok());
    return answer.value().handle;
  }
  Code OpenError(NodeId node) {
    Answer<OpenedFile> answer;
    fs_->Open(node, answer.reply());
    EXPECT_FALSE(answer.ok());
    return answer.error();
  }
  std::string Read(HandleId handle, uint64_t offset, size_t size) {
    Answer<core::ReadBytes> answer;
    fs_->Read(handle, offset, size, answer.reply());
    EXPECT_TRUE(answer.ok());
    const auto bytes = answer.value().bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  core::ManualScheduler scheduler_;
  MemoryEngine engine_{scheduler_};
  MemoryNamespace* tree_ = nullptr;
  std::unique_ptr<FileSystem> fs_;
};

TEST_F(FileSystemTest, LookupOfAFile) {
  tree_->AddFile("/a", {.size = 1025, .last_modified = 77});
  engine_.ttl_left_ms = 30000;
  const Entry entry = Lookup("a");
  EXPECT_EQ(entry.ttl, seconds(30));
  EXPECT_EQ(entry.attr.size, 1025u);
  EXPECT_EQ(entry.attr.mtime, 77);
  EXPECT_EQ(entry.attr.mode, static_cast<mode_t>(S_IFREG | 0444));
  EXPECT_EQ(fs_->GetAttr(entry.node)->ino, entry.attr.ino);
}

TEST_F(FileSystemTest, WithoutADateTheMountsTime) {
  tree_->AddFile("/a", {.last_modified = -1});
  EXPECT_EQ(Lookup("a").attr.mtime, 1704067200);
}

TEST_F(FileSystemTest, TimeToLiveIsWithinReason) {
  tree_->AddFile("/a", {});
  const struct {
    int64_t left_ms;
    core::Duration expected;
  } cases[] = {{-5, milliseconds(100)},
               {0, milliseconds(100)},
               {59000, seconds(59)},
               {3600000, seconds(60)}};
  for (const auto& test : cases) {
    engine_.ttl_left_ms = test.left_ms;
    EXPECT_EQ(Lookup("a").ttl, test.expected) << test.left_ms;
  }
}

TEST_F(FileSystemTest, AbsenceIsKeptForASecond) {
  const Entry entry = Lookup("nothing");
  EXPECT_EQ(entry.node, kNoNode);
  EXPECT_EQ(entry.ttl, seconds(1));
}

TEST_F(FileSystemTest, LookupBelowAFileOrAnUnknownNode) {
  tree_->AddFile("/a", {});
  for (const NodeId parent : {Lookup("a").node, NodeId{999}}) {
    Answer<Entry> answer;
    fs_->Lookup(parent, "x", answer.reply());
    EXPECT_EQ(answer.error(), Code::kStale);
  }
}

TEST_F(FileSystemTest, AnUndeliveredLookupIsForgotten) {
  tree_->AddFile("/a", {});
  Answer<Entry> answer;
  answer.delivered = false;
  fs_->Lookup(kRootNode, "a", answer.reply());
  EXPECT_EQ(fs_->Stats().nodes, 1u);
}

TEST_F(FileSystemTest, AnInterruptedLookupIsForgottenWhenItEnds) {
  tree_->AddFile("/a", {});
  tree_->lookups.Close();
  Answer<Entry> answer;
  auto reply = answer.reply();
  const auto pending = reply.pending();
  fs_->Lookup(kRootNode, "a", std::move(reply));
  EXPECT_FALSE(answer.there());
  EXPECT_FALSE(fs_->Idle());
  pending->Fail(core::MakeError(Code::kCancelled, "killed"));
  EXPECT_EQ(answer.error(), Code::kCancelled);
  tree_->lookups.Open();
  EXPECT_TRUE(fs_->Idle());
  EXPECT_EQ(fs_->Stats().nodes, 1u);
}

TEST_F(FileSystemTest, ReadsAreCutAtTheEnd) {
  tree_->AddFile("/a", {.size = 10000, .seed = 3});
  const HandleId handle = Open(Lookup("a").node);
  EXPECT_EQ(Read(handle, 0, 4096), Pattern(3, 0, 4096));
  EXPECT_EQ(Read(handle, 9000, 4096), Pattern(3, 9000, 1000));
  EXPECT_EQ(Read(handle, 10000, 4096), "");
  EXPECT_EQ(Read(handle, UINT64_MAX, 4096), "");
  std::string buffer(4096, 'x');
  const auto now = fs_->TryRead(handle, 9000, std::as_writable_bytes(std::span(buffer)));
  ASSERT_TRUE(now && *now);
  EXPECT_EQ((*now)->bytes.size(), 1000u);
  EXPECT_EQ(buffer.substr(0, 1000), Pattern(3, 9000, 1000));
  EXPECT_TRUE(
      (*fs_->TryRead(handle, 10000, std::as_writable_bytes(std::span(buffer))))->bytes.empty());
}

TEST_F(FileSystemTest, TryReadSaysWhenItWouldWait) {
  tree_->AddFile("/a", {.size = 10});
  const HandleId handle = Open(Lookup("a").node);
  engine_.in_memory = false;
  std::byte buffer[10];
  EXPECT_FALSE(fs_->TryRead(handle, 0, buffer));
}

TEST_F(FileSystemTest, AnInterruptedReadIsCancelled) {
  tree_->AddFile("/a", {.size = 10});
  const HandleId handle = Open(Lookup("a").node);
  engine_.reads.Close();
  Answer<core::ReadBytes> answer;
  auto reply = answer.reply();
  const auto pending = reply.pending();
  fs_->Read(handle, 0, 10, std::move(reply));
  pending->Fail(core::MakeError(Code::kCancelled, "killed"));
  EXPECT_EQ(engine_.cancelled, 1);
  EXPECT_EQ(answer.error(), Code::kCancelled);
}

TEST_F(FileSystemTest, FlushLowersInterestOnlyWhileReadsWait) {
  tree_->AddFile("/a", {.size = 10});
  const HandleId handle = Open(Lookup("a").node);
  fs_->Flush(handle);
  EXPECT_EQ(engine_.lowered, 0);
  engine_.reads.Close();
  Answer<core::ReadBytes> answer;
  fs_->Read(handle, 0, 10, answer.reply());
  fs_->Flush(handle);
  EXPECT_EQ(engine_.lowered, 1);
  EXPECT_FALSE(answer.there());
  engine_.reads.Open();
  EXPECT_TRUE(answer.ok());
  fs_->Flush(handle);
  EXPECT_EQ(engine_.lowered, 1);
}

TEST_F(FileSystemTest, ReleaseEndsTheReader) {
  tree_->AddFile("/a", {.size = 10});
  const HandleId handle = Open(Lookup("a").node);
  EXPECT_EQ(engine_.readers, 1);
  fs_->Release(handle);
  EXPECT_EQ(engine_.readers, 0);
  Answer<core::ReadBytes> answer;
  fs_->Read(handle, 0, 10, answer.reply());
  EXPECT_EQ(answer.error(), Code::kInternal);
}

TEST_F(FileSystemTest, AnUndeliveredOpenIsReleased) {
  tree_->AddFile("/a", {.size = 10});
  Answer<OpenedFile> answer;
  answer.delivered = false;
  fs_->Open(Lookup("a").node, answer.reply());
  EXPECT_EQ(engine_.readers, 0);
}

TEST_F(FileSystemTest, AFreshNodeOpensWithoutAsking) {
  tree_->AddFile("/a", {.size = 10});
  const NodeId node = Lookup("a").node;
  Open(node);
  EXPECT_EQ(tree_->open_count, 0);
  scheduler_.Advance(seconds(61));
  Open(node);
  EXPECT_EQ(tree_->open_count, 1) << "its time is up";
  Open(node);
  EXPECT_EQ(tree_->open_count, 1);
}

TEST_F(FileSystemTest, AnotherVersionIsAnotherNode) {
  tree_->AddFile("/a", {.size = 10, .seed = 1, .version = "e:1"});
  const Entry old = Lookup("a");
  const HandleId handle = Open(old.node);
  tree_->AddFile("/a", {.size = 20, .seed = 2, .version = "e:2"});
  EXPECT_EQ(OpenError(old.node), Code::kStale);
  const Entry fresh = Lookup("a");
  EXPECT_NE(fresh.node, old.node);
  EXPECT_EQ(fresh.attr.ino, old.attr.ino);
  EXPECT_EQ(Read(Open(fresh.node), 0, 100), Pattern(2, 0, 20));
  EXPECT_EQ(Read(handle, 0, 100), Pattern(1, 0, 10));
  EXPECT_EQ(fs_->GetAttr(old.node)->size, 10u);
}

TEST_F(FileSystemTest, AVersionNobodyHasNoticedYetIsStaleOnceItsTimeIsUp) {
  tree_->AddFile("/a", {.size = 10, .version = "", .volatile_version = true});
  const NodeId node = Lookup("a").node;
  scheduler_.Advance(seconds(61));
  tree_->AddFile("/a", {.size = 10, .version = "", .volatile_version = true});
  EXPECT_EQ(OpenError(node), Code::kStale);
}

TEST_F(FileSystemTest, APromisedFileIsAskedForWhenItIsOpened) {
  tree_->AddPromised("/a", {.size = 10, .seed = 1}, {10, "t"});
  const Entry entry = Lookup("a");
  EXPECT_EQ(entry.attr.size, 10u);
  EXPECT_EQ(entry.attr.mtime, 5);
  EXPECT_EQ(tree_->open_count, 0);
  EXPECT_EQ(*fs_->GetXattr(entry.node, "user.dartfs.size"), "10");
  EXPECT_EQ(*fs_->GetXattr(entry.node, "user.dartfs.version"), std::nullopt);
  EXPECT_EQ(Read(Open(entry.node), 0, 100), Pattern(1, 0, 10));
  EXPECT_EQ(*fs_->GetXattr(entry.node, "user.dartfs.version"), "e:\"1\"");
  Open(entry.node);
  EXPECT_EQ(tree_->open_count, 1) << "fresh";
  EXPECT_EQ(Lookup("a").node, entry.node);  // the pages stay
  tree_->ForgetPromise("/a");
}

TEST_F(FileSystemTest, AWrongPromiseIsNeverRead) {
  for (const uint64_t size : {uint64_t{9}, uint64_t{11}}) {
    const std::string name = "a" + std::to_string(size);
    tree_->AddPromised("/" + name, {.size = 10, .seed = 1}, {size, "t"});
    const Entry entry = Lookup(name);
    EXPECT_EQ(entry.attr.size, size);
    EXPECT_EQ(OpenError(entry.node), Code::kStale);
    tree_->ForgetPromise("/" + name);  // the namespace has learned
    const Entry right = Lookup(name);
    EXPECT_EQ(right.attr.size, 10u);
    EXPECT_EQ(right.attr.ino, entry.attr.ino);
    EXPECT_NE(right.node, entry.node);
    EXPECT_EQ(Read(Open(right.node), 0, 100), Pattern(1, 0, 10));
    EXPECT_EQ(OpenError(entry.node), Code::kStale);
  }
}

TEST_F(FileSystemTest, APromiseOnceOpenedIsThatVersionForGood) {
  tree_->AddPromised("/a", {.size = 10, .seed = 1, .version = "e:1"}, {10, "t"});
  const Entry old = Lookup("a");
  const HandleId handle = Open(old.node);
  tree_->AddPromised("/a", {.size = 10, .seed = 2, .version = "e:2"}, {10, "t"});
  EXPECT_EQ(OpenError(old.node), Code::kStale);
  scheduler_.Advance(seconds(61));
  EXPECT_EQ(OpenError(old.node), Code::kStale);
  tree_->ForgetPromise("/a");
  const Entry fresh = Lookup("a");
  EXPECT_NE(fresh.node, old.node);
  EXPECT_EQ(Read(Open(fresh.node), 0, 100), Pattern(2, 0, 10));
  EXPECT_EQ(Read(handle, 0, 100), Pattern(1, 0, 10));
}

TEST_F(FileSystemTest, AnotherVersionOfAPromisedFileIsFoundByTheNextLookup) {
  for (const bool unversioned : {false, true}) {
    const std::string name = unversioned ? "u" : "v";
    const auto put = [&](uint64_t seed) {
      tree_->AddPromised("/" + name,
                         {.size = 10,
                          .seed = seed,
                          .version = unversioned ? "" : "e:" + std::to_string(seed),
                          .volatile_version = unversioned},
                         {10, "t"});
    };
    put(1);
    Open(Lookup(name).node);
    put(2);
    scheduler_.Advance(seconds(61));
    const Entry old = Lookup(name);  // the promise is the same
    EXPECT_EQ(OpenError(old.node), Code::kStale);
    EXPECT_EQ(Read(Open(Lookup(name).node), 0, 100), Pattern(2, 0, 10));
  }
}

TEST_F(FileSystemTest, OpenOfADirectoryOrAnUnknownNode) {
  EXPECT_EQ(OpenError(kRootNode), Code::kIsDirectory);
  EXPECT_EQ(OpenError(4711), Code::kStale);
}

TEST_F(FileSystemTest, DirectoryPages) {
  for (const char* name : {"/a", "/b", "/c"}) tree_->AddFile(name, {});
  tree_->AddDir("/sub/");
  const auto handle = fs_->OpenDir(kRootNode);
  ASSERT_TRUE(handle.has_value());
  std::vector<std::string> names;
  uint64_t offset = 0;
  for (int pages = 0; pages < 10; ++pages) {
    Answer<DirSnapshot> answer;
    fs_->LoadDir(*handle, offset, answer.reply());
    ASSERT_TRUE(answer.ok());
    Page page(2);
    fs_->WriteDir(answer.value(), offset, false, page);
    if (page.entries.empty()) break;
    offset = page.entries.back().next_offset;
    names.insert(names.end(), page.names.begin(), page.names.end());
  }
  EXPECT_EQ(names, (std::vector<std::string>{".", "..", "a", "b", "c", "sub"}));
  EXPECT_EQ(tree_->list_count, 1);
}

TEST_F(FileSystemTest, RewindListsAgain) {
  const auto handle = fs_->OpenDir(kRootNode);
  for (int i = 0; i < 2; ++i) {
    Answer<DirSnapshot> answer;
    fs_->LoadDir(*handle, 0, answer.reply());
    EXPECT_TRUE(answer.ok());
  }
  EXPECT_EQ(tree_->list_count, 2);
}

TEST_F(FileSystemTest, OffsetsBehindTheEnd) {
  const auto handle = fs_->OpenDir(kRootNode);
  for (const uint64_t offset : {uint64_t{2}, uint64_t{3}, UINT64_MAX}) {
    Answer<DirSnapshot> answer;
    fs_->LoadDir(*handle, offset, answer.reply());
    Page page(10);
    fs_->WriteDir(answer.value(), offset, true, page);
    EXPECT_TRUE(page.entries.empty());
  }
}

TEST_F(FileSystemTest, AttributesOfAListingCostNoRequest) {
  tree_->AddFile("/known", {.size = 5}, /*opened=*/true);
  tree_->AddFile("/unknown", {.size = 5});
  tree_->AddDir("/sub/");
  const auto handle = fs_->OpenDir(kRootNode);
  Answer<DirSnapshot> answer;
  fs_->LoadDir(*handle, 0, answer.reply());
  Page page(10);
  fs_->WriteDir(answer.value(), 0, true, page);
  ASSERT_EQ(page.entries.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(page.entries[i].known.has_value(), page.names[i] == "known") << page.names[i];
  }
  EXPECT_EQ(tree_->lookup_count, 0);
  EXPECT_EQ(fs_->Stats().nodes, 2u);
}

TEST_F(FileSystemTest, DeadlineIsTheTimeoutAndOfNamesThereIsAlwaysOne) {
  EXPECT_EQ(fs_->options().timeout, seconds(60));
  auto names = std::make_unique<MemoryNamespace>(engine_);
  const MemoryNamespace& tree = *names;
  FileSystemOptions options;
  options.timeout = core::Duration::zero();
  FileSystem forever(options, std::move(names), engine_);
  Answer<Entry> never;
  forever.Lookup(kRootNode, "x", never.reply());
  EXPECT_EQ(tree.last_deadline.load(), scheduler_.clock().Now() + kNameTimeout);
  Lookup("x");
  EXPECT_EQ(tree_->last_deadline.load(), scheduler_.clock().Now() + seconds(60));
}

TEST_F(FileSystemTest, StopRefusesAndEndsHandles) {
  tree_->AddFile("/a", {.size = 10});
  const NodeId node = Lookup("a").node;
  Open(node);
  fs_->Stop();
  fs_->Stop();
  EXPECT_EQ(engine_.readers, 0);
  EXPECT_EQ(OpenError(node), Code::kUnavailable);
  EXPECT_FALSE(fs_->OpenDir(kRootNode).has_value());
}

TEST_F(FileSystemTest, Xattrs) {
  tree_->AddFile("/a?x", {.size = 10, .version = "e:\"\n\""});
  const NodeId node = Lookup("a?x").node;
  EXPECT_EQ(**fs_->GetXattr(node, "user.dartfs.url"), "http://h/a");
  EXPECT_EQ(**fs_->GetXattr(node, "user.dartfs.version"), "e:\"\\x0a\"");
  EXPECT_EQ(**fs_->GetXattr(node, "user.dartfs.size"), "10");
  EXPECT_EQ((*fs_->GetXattr(node, "user.dartfs.key"))->size(), 32u);
  EXPECT_EQ(**fs_->GetXattr(node, "user.dartfs.verified"), "0");
  EXPECT_FALSE(fs_->GetXattr(node, "user.other")->has_value());
  EXPECT_FALSE(fs_->GetXattr(kRootNode, "user.dartfs.size")->has_value());
  EXPECT_EQ(fs_->ListXattr(node)->size(), 6u);
  EXPECT_TRUE(fs_->ListXattr(kRootNode)->empty());
}

TEST_F(FileSystemTest, EveryXattrThatIsListedCanBeRead) {
  tree_->AddFile("/d/known", {.size = 10, .version = "e:1"});
  tree_->AddPromised("/promised", {.size = 10, .seed = 2, .version = "e:2"}, {10, "t"});
  for (const NodeId node : {Lookup("d").node, Lookup("promised").node}) {
    const auto names = fs_->ListXattr(node);
    ASSERT_TRUE(names);
    EXPECT_FALSE(names->empty());
    for (const std::string& name : *names)
      EXPECT_TRUE(fs_->GetXattr(node, name)->has_value()) << name;
  }
}

}  // namespace
}  // namespace dartfs::fs
