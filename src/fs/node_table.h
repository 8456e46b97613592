// NodeTable: what the kernel's node IDs stand for. A node per name and version: another version of
// a name is another node, so that the page cache never mixes them. A file that nobody has asked the
// origin about is a node of what is promised of it, until its first open binds it to the version
// that it has from then on.
//
// IDs are numbers, counted up and never used twice. st_ino belongs to the name and is the same
// after a remount. Thread-safe; no I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "fs/namespace.h"

namespace dartfs::fs {

using NodeId = uint64_t;
inline constexpr NodeId kRootNode = 1;
inline constexpr NodeId kNoNode = 0;

class Node {
 public:
  struct Facts {
    NodeId id = kNoNode;
    std::shared_ptr<Node> parent;  // null for the root
    std::string name;
    EntryKind kind = EntryKind::kDirectory;
    DirRef dir;       // directories
    std::string tag;  // files: which version (VersionTag), or which promise
    uint64_t ino = 0;
    uint64_t size = 0;  // bytes
    int64_t mtime = 0;  // seconds since the epoch
  };
  explicit Node(Facts facts) : facts_(std::move(facts)) {}

  const Facts& facts() const { return facts_; }
  bool is_dir() const { return facts_.kind == EntryKind::kDirectory; }

  // Files: which version it stands for; empty for a promise that no open has bound yet.
  std::string version_tag() const EXCLUDES(mu_);
  // Files: the version as the engine has it, or null where it has been let go; and until when it
  // may be opened without asking for the current version.
  std::shared_ptr<core::Object> object() const EXCLUDES(mu_);
  core::TimePoint fresh_until() const EXCLUDES(mu_);
  // Files: what was read of it, and is perhaps cached by the kernel, was not what its digest names.
  bool HasRefusedBytes() const EXCLUDES(mu_);
  // Files: no lookup finds the node any more; the next one makes another.
  void Retire() { retired_.store(true, std::memory_order_release); }
  bool retired() const { return retired_.load(std::memory_order_acquire); }

  // Directories: true for the second look at one of its names since the listing was shown (once a
  // listing, and only within half a minute of it): somebody walks over the entries.
  bool NoteLook(core::TimePoint now) EXCLUDES(mu_);
  void NoteListed(core::TimePoint now) EXCLUDES(mu_);

 private:
  friend class NodeTable;  // which bounds how many nodes hold objects

  // Returns what the node held before, so that it goes outside the caller's locks.
  [[nodiscard]] std::shared_ptr<core::Object> Refresh(std::shared_ptr<core::Object> object,
                                                      core::TimePoint fresh_until) EXCLUDES(mu_);

  // False where it stands for another version already.
  bool Bind(const std::string& version_tag, uint64_t size) EXCLUDES(mu_);

  const Facts facts_;
  std::atomic<bool> retired_{false};
  mutable core::Mutex mu_;             // leaf
  std::string bound_ GUARDED_BY(mu_);  // of a promise: the version, once it has one
  std::shared_ptr<core::Object> object_ GUARDED_BY(mu_);
  core::TimePoint fresh_until_ GUARDED_BY(mu_){};
  core::TimePoint listed_at_ GUARDED_BY(mu_){};
  uint32_t looks_ GUARDED_BY(mu_) = UINT32_MAX;
};

// What names one version among others. Objects without a version of their own (they could have any
// bytes tomorrow) are told apart by instance.
std::string VersionTag(const core::Object& object);

// What Remember needs to know of a name that has been looked up.
struct NodeInit {
  EntryKind kind = EntryKind::kFile;
  DirRef dir;
  std::shared_ptr<core::Object> object;  // files: this, or a promise, or both
  std::optional<Promise> promise;
  int64_t mtime = 0;
  core::TimePoint fresh_until{};
};

class NodeTable {
 public:
  struct Limits {
    size_t nodes = size_t{4} << 20;     // kernel lookups beyond this are refused
    size_t objects = size_t{64} << 10;  // nodes that keep their Object; the oldest let go first
  };
  NodeTable(DirRef root, int64_t mtime, Limits limits);
  NodeTable(DirRef root, int64_t mtime) : NodeTable(std::move(root), mtime, Limits()) {}

  // Null when the kernel has forgotten it, or never knew it.
  std::shared_ptr<Node> Get(NodeId id) const EXCLUDES(mu_);

  // The node of that name and version, made where there is none; counts one lookup by the kernel.
  // kBusy when the table is full.
  core::Result<std::shared_ptr<Node>> Remember(const std::shared_ptr<Node>& parent,
                                               std::string_view name, NodeInit init) EXCLUDES(mu_);
  // The node's version as the engine has it now; binds a promise that is unbound. False where the
  // node stands for another version: it stays as it is, and is not found by its promise any more.
  // Nothing happens to a node that is
  // forgotten.
  bool Refresh(const Node& node, std::shared_ptr<core::Object> object, core::TimePoint fresh_until)
      EXCLUDES(mu_);
  // Takes back `lookups` of the kernel's; at zero the node goes: true. The root stays.
  bool Forget(NodeId id, uint64_t lookups) EXCLUDES(mu_);

  // The st_ino that the name has, or would have.
  uint64_t InodeOf(const Node& parent, std::string_view name) const EXCLUDES(mu_);

  size_t size() const EXCLUDES(mu_);
  uint64_t refused() const EXCLUDES(mu_);

 private:
  struct Known {
    std::shared_ptr<Node> node;
    uint64_t lookups = 0;
  };
  struct Key {
    NodeId parent;
    std::string_view name, tag;  // views into the node
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  const std::shared_ptr<Node>* FindLocked(NodeId parent, std::string_view name,
                                          const NodeInit& init) const REQUIRES(mu_);
  void ForgetKeyLocked(const Node& node) REQUIRES(mu_);
  uint64_t InodeLocked(uint64_t parent_ino, std::string_view name) const REQUIRES(mu_);
  // Counts the node among those that hold an object; returns the object of the one that let go.
  std::shared_ptr<core::Object> HoldObject(NodeId id) REQUIRES(mu_);

  const Limits limits_;
  mutable core::Mutex mu_;  // before Node's
  NodeId last_id_ GUARDED_BY(mu_) = kRootNode;
  std::unordered_map<NodeId, Known> nodes_ GUARDED_BY(mu_);
  std::unordered_map<Key, NodeId, KeyHash> by_key_ GUARDED_BY(mu_);
  std::unordered_multimap<uint64_t, const Node*> by_ino_ GUARDED_BY(mu_);
  std::deque<NodeId> holding_objects_ GUARDED_BY(mu_);
  uint64_t refused_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::fs
