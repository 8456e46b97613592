#include "fs/node_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "fake/manual_scheduler.h"
#include "fs/memory_engine.h"

namespace dartfs::fs {
namespace {

class NodeTableTest : public ::testing::Test {
 protected:
  std::shared_ptr<core::Object> File(const std::string& name, const std::string& version = "e:1",
                                     bool unversioned = false) {
    return engine_.Put(MemoryNamespace::Of("/" + name),
                       {.size = 10, .version = version, .volatile_version = unversioned});
  }
  std::shared_ptr<Node> RememberFile(const std::string& name,
                                     std::shared_ptr<core::Object> object) {
    NodeInit init;
    init.object = std::move(object);
    init.fresh_until = core::TimePoint(std::chrono::seconds(5));
    return Remember(root_, name, std::move(init));
  }
  std::shared_ptr<Node> RememberDir(const std::shared_ptr<Node>& parent, const std::string& name) {
    NodeInit init;
    init.kind = EntryKind::kDirectory;
    init.dir = {parent->facts().dir.key + name + "/"};
    return Remember(parent, name, std::move(init));
  }
  std::shared_ptr<Node> Remember(const std::shared_ptr<Node>& parent, const std::string& name,
                                 NodeInit init) {
    auto node = table_.Remember(parent, name, std::move(init));
    EXPECT_TRUE(node.has_value());
    return *node;
  }

  core::ManualScheduler scheduler_;
  MemoryEngine engine_{scheduler_};
  NodeTable table_{DirRef{"/"}, 1000, {.nodes = 100, .objects = 4}};
  std::shared_ptr<Node> root_ = table_.Get(kRootNode);
};

TEST_F(NodeTableTest, RootIsThereForEver) {
  EXPECT_TRUE(root_->is_dir());
  EXPECT_EQ(root_->facts().ino, 1u);
  table_.Forget(kRootNode, 100);
  EXPECT_TRUE(table_.Get(kRootNode));
}

TEST_F(NodeTableTest, PromisesAndVersions) {
  const auto remember = [&](std::shared_ptr<core::Object> object, std::optional<Promise> promise) {
    NodeInit init;
    init.object = std::move(object);
    init.promise = std::move(promise);
    return Remember(root_, "a", std::move(init));
  };
  const auto promised = remember(nullptr, Promise{10, "t"});
  EXPECT_EQ(promised->facts().size, 10u);
  EXPECT_EQ(promised->version_tag(), "");
  EXPECT_EQ(remember(nullptr, Promise{10, "t"}), promised);
  EXPECT_NE(remember(nullptr, Promise{10, "u"}), promised);
  EXPECT_NE(remember(nullptr, Promise{11, "t"}), promised);
  // A version that comes by the promise makes it its own; without the promise it is found too.
  const auto first = File("a", "e:1");
  EXPECT_EQ(remember(first, Promise{10, "t"}), promised);
  EXPECT_EQ(promised->version_tag(), VersionTag(*first));
  EXPECT_EQ(promised->object(), first);
  const auto second = remember(File("a", "e:2"), Promise{10, "t"});
  EXPECT_NE(second, promised);
  EXPECT_EQ(remember(File("a", "e:2"), std::nullopt), second);
  EXPECT_FALSE(table_.Refresh(*promised, File("a", "e:2"), {}));
  EXPECT_EQ(promised->object(), first);
  EXPECT_TRUE(table_.Refresh(*promised, File("a", "e:1"), {}));
  const auto longer = remember(nullptr, Promise{12, "t"});
  EXPECT_FALSE(table_.Refresh(*longer, File("a", "e:1"), {}));  // of another size
  EXPECT_EQ(longer->version_tag(), "");
}

TEST_F(NodeTableTest, APromiseWhoseNodeIsOfAnotherVersionMakesANewOne) {
  struct Row {
    const char* name;
    const char* next;
    bool unversioned;
  };
  for (const Row& row : {Row{"versions", "e:2", false}, Row{"instances", "", true}}) {
    SCOPED_TRACE(row.name);
    NodeInit init;
    init.promise = Promise{10, "t"};
    const auto first = File(row.name, row.unversioned ? "" : "e:1", row.unversioned);
    const auto next = File(row.name, row.next, row.unversioned);
    const auto old = Remember(root_, row.name, init);
    ASSERT_TRUE(table_.Refresh(*old, first, {}));
    EXPECT_EQ(Remember(root_, row.name, init), old);
    EXPECT_FALSE(table_.Refresh(*old, next, {}));
    const auto fresh = Remember(root_, row.name, init);
    EXPECT_NE(fresh, old);
    EXPECT_EQ(fresh->facts().ino, old->facts().ino);
    EXPECT_TRUE(table_.Refresh(*fresh, next, {}));
    // An open of the old one, or its end, leaves the new one alone.
    EXPECT_FALSE(table_.Refresh(*old, next, {}));
    EXPECT_TRUE(table_.Forget(old->facts().id, 2));
    EXPECT_EQ(Remember(root_, row.name, init), fresh);
  }
}

TEST_F(NodeTableTest, AForgottenPromiseIsGone) {
  NodeInit init;
  init.promise = Promise{10, "t"};
  const auto node = Remember(root_, "a", init);
  ASSERT_TRUE(table_.Refresh(*node, File("a"), {}));
  table_.Forget(node->facts().id, 1);
  EXPECT_EQ(table_.size(), 1u);
  const auto again = Remember(root_, "a", init);
  EXPECT_NE(again->facts().id, node->facts().id);
  EXPECT_EQ(again->version_tag(), "");
}

TEST_F(NodeTableTest, OneNodeForANameAndVersion) {
  const auto first = RememberFile("a", File("a", "e:1"));
  const auto same = RememberFile("a", File("a", "e:1"));  // another Object of the same version
  const auto next = RememberFile("a", File("a", "e:2"));
  EXPECT_EQ(first, same);
  EXPECT_NE(first->facts().id, next->facts().id);
  EXPECT_EQ(first->facts().ino, next->facts().ino);
}

TEST_F(NodeTableTest, WithoutAVersionEachInstanceIsItsOwn) {
  const auto object = File("a", "", true);
  const auto first = RememberFile("a", object);
  EXPECT_EQ(first, RememberFile("a", object));
  EXPECT_NE(first, RememberFile("a", File("a", "", true)));
}

TEST_F(NodeTableTest, NamesAreToldApartByDirectory) {
  const auto sub = RememberDir(root_, "sub");
  NodeInit init;
  init.object = File("a");
  const auto in_root = RememberFile("a", init.object);
  const auto in_sub = Remember(sub, "a", init);
  EXPECT_NE(in_root->facts().id, in_sub->facts().id);
  EXPECT_NE(in_root->facts().ino, in_sub->facts().ino);
}

TEST_F(NodeTableTest, ForgottenAfterAsManyLookups) {
  const auto object = File("a");
  const NodeId id = RememberFile("a", object)->facts().id;
  RememberFile("a", object);
  RememberFile("a", object);
  table_.Forget(id, 2);
  EXPECT_TRUE(table_.Get(id));
  table_.Forget(id, 1);
  EXPECT_FALSE(table_.Get(id));
  table_.Forget(id, 1);  // twice is harmless
  EXPECT_EQ(table_.size(), 1u);
  const NodeId again = RememberFile("a", object)->facts().id;
  EXPECT_NE(again, id) << "an ID is never used twice";
}

TEST_F(NodeTableTest, ForgetOfMoreThanCounted) {
  const NodeId id = RememberFile("a", File("a"))->facts().id;
  table_.Forget(id, UINT64_MAX);
  EXPECT_FALSE(table_.Get(id));
}

TEST_F(NodeTableTest, ChildrenKeepTheirParent) {
  const auto sub = RememberDir(root_, "sub");
  const auto below = RememberDir(sub, "below");
  table_.Forget(sub->facts().id, 1);
  EXPECT_EQ(below->facts().parent->facts().name, "sub");
  table_.Forget(below->facts().id, 1);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(NodeTableTest, InodesAreStableAndKnownBeforeTheLookup) {
  const uint64_t before = table_.InodeOf(*root_, "a");
  const auto node = RememberFile("a", File("a"));
  EXPECT_EQ(node->facts().ino, before);
  NodeTable other(DirRef{"/"}, 5);
  EXPECT_EQ(other.InodeOf(*other.Get(kRootNode), "a"), before);
  EXPECT_NE(other.InodeOf(*other.Get(kRootNode), "b"), before);
}

TEST_F(NodeTableTest, LimitOfNodes) {
  for (int i = 0; i < 99; ++i) RememberDir(root_, "d" + std::to_string(i));
  NodeInit init;
  init.kind = EntryKind::kDirectory;
  const auto refused = table_.Remember(root_, "one more", init);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, core::Code::kBusy);
  EXPECT_EQ(table_.refused(), 1u);
}

TEST_F(NodeTableTest, OldestObjectsAreLetGo) {
  std::vector<std::shared_ptr<Node>> nodes;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "f" + std::to_string(i);
    nodes.push_back(RememberFile(name, File(name)));
  }
  EXPECT_FALSE(nodes[0]->object());
  EXPECT_FALSE(nodes[1]->object());
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(nodes[static_cast<size_t>(i)]->object());
  EXPECT_EQ(RememberFile("f0", File("f0")), nodes[0]);
  EXPECT_TRUE(nodes[0]->object());
  EXPECT_FALSE(nodes[2]->object());
}

TEST_F(NodeTableTest, RefreshedObjectsCountAmongThoseHeld) {
  std::vector<std::shared_ptr<Node>> nodes;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "f" + std::to_string(i);
    nodes.push_back(RememberFile(name, File(name)));
  }
  const core::TimePoint later(std::chrono::seconds(9));
  table_.Refresh(*nodes[0], File("f0"), later);
  EXPECT_TRUE(nodes[0]->object());
  EXPECT_EQ(nodes[0]->fresh_until(), later);
  EXPECT_FALSE(nodes[2]->object()) << "the oldest of the four lets go";
  for (int i = 0; i < 10; ++i) table_.Refresh(*nodes[0], File("f0"), later);
  EXPECT_TRUE(nodes[3]->object()) << "counted once";
}

TEST_F(NodeTableTest, AForgottenNodeIsNotRefreshed) {
  const auto node = RememberFile("f", File("f"));
  const auto object = node->object();
  table_.Forget(node->facts().id, 1);
  table_.Refresh(*node, File("f"), {});
  EXPECT_EQ(node->object(), object);
}

TEST_F(NodeTableTest, UnversionedObjectsAreKept) {
  const auto node = RememberFile("u", File("u", "", true));
  for (int i = 0; i < 10; ++i) RememberFile("f" + std::to_string(i), File("f" + std::to_string(i)));
  EXPECT_TRUE(node->object());
}

TEST_F(NodeTableTest, AWalkIsTheSecondLookSoonAfterAListing) {
  using std::chrono::seconds;
  const core::TimePoint start(seconds(100));
  EXPECT_FALSE(root_->NoteLook(start)) << "never listed";
  root_->NoteListed(start);
  EXPECT_FALSE(root_->NoteLook(start));
  EXPECT_TRUE(root_->NoteLook(start));
  EXPECT_FALSE(root_->NoteLook(start)) << "once a listing";
  root_->NoteListed(start);
  EXPECT_FALSE(root_->NoteLook(start + seconds(31)));
  EXPECT_FALSE(root_->NoteLook(start + seconds(31)));
}

TEST_F(NodeTableTest, ManyThreads) {
  const auto object = File("a");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        NodeInit init;
        init.object = object;
        const auto node = table_.Remember(root_, "a", init);
        ASSERT_TRUE(node.has_value());
        table_.InodeOf(*root_, "a");
        table_.Forget((*node)->facts().id, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table_.size(), 1u);
}

}  // namespace
}  // namespace dartfs::fs
