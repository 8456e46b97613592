#include "fs/node_table.h"

#include <algorithm>
#include <utility>

#include "core/base/hash.h"
#include "core/engine/object.h"

namespace dartfs::fs {
namespace {

constexpr core::Duration kLookWindow = std::chrono::seconds(30);
constexpr uint32_t kLooksThatAreAWalk = 2;

// Tags: of a directory its reference, of a versioned object its key, of another one its address,
// which nobody else can have while a node keeps the object; of what is only promised the promise.
constexpr char kDirectoryMark = 'd';
constexpr char kVersionMark = 'v';
constexpr char kInstanceMark = 'i';
constexpr char kPromiseMark = 'p';

uint64_t InodeCandidate(uint64_t parent_ino, std::string_view name, uint64_t salt) {
  std::string text(reinterpret_cast<const char*>(&parent_ino), sizeof parent_ino);
  text.append(reinterpret_cast<const char*>(&salt), sizeof salt);
  text.append(name);
  return core::Xxh3(std::string_view(text));
}

bool IsReservedInode(uint64_t ino) {
  return ino == 0 || ino == kRootNode || ino == UINT32_MAX || ino == UINT64_MAX;
}

bool IsName(const Node& node, uint64_t parent_ino, std::string_view name) {
  const auto& facts = node.facts();
  return facts.parent != nullptr && facts.parent->facts().ino == parent_ino && facts.name == name;
}

std::string PromiseTag(const Promise& promise) {
  return kPromiseMark +
         std::string(reinterpret_cast<const char*>(&promise.size), sizeof promise.size) +
         promise.tag;
}

}  // namespace

std::string Node::version_tag() const {
  if (facts_.tag.front() != kPromiseMark) return facts_.tag;
  core::MutexLock lock(mu_);
  return bound_;
}

bool Node::Bind(const std::string& version_tag, uint64_t size) {
  if (facts_.tag.front() != kPromiseMark) return facts_.tag == version_tag;
  if (facts_.size != size) return false;
  core::MutexLock lock(mu_);
  if (bound_.empty()) bound_ = version_tag;
  return bound_ == version_tag;
}

std::shared_ptr<core::Object> Node::object() const {
  core::MutexLock lock(mu_);
  return object_;
}

bool Node::HasRefusedBytes() const {
  core::MutexLock lock(mu_);
  return object_ != nullptr && object_->refused();
}

core::TimePoint Node::fresh_until() const {
  core::MutexLock lock(mu_);
  return fresh_until_;
}

std::shared_ptr<core::Object> Node::Refresh(std::shared_ptr<core::Object> object,
                                            core::TimePoint fresh_until) {
  core::MutexLock lock(mu_);
  fresh_until_ = fresh_until;
  return std::exchange(object_, std::move(object));
}

bool Node::NoteLook(core::TimePoint now) {
  core::MutexLock lock(mu_);
  if (looks_ >= kLooksThatAreAWalk || now - listed_at_ > kLookWindow) return false;
  return ++looks_ == kLooksThatAreAWalk;
}

void Node::NoteListed(core::TimePoint now) {
  core::MutexLock lock(mu_);
  listed_at_ = now;
  looks_ = 0;
}

std::string VersionTag(const core::Object& object) {
  const auto& facts = object.facts();
  // A size of its own even where the origin says it is the same version: a node's never changes.
  const uint64_t size = object.size();
  const std::string size_bytes(reinterpret_cast<const char*>(&size), sizeof size);
  if (facts.identity.digest) return kVersionMark + facts.identity.digest->ToString() + size_bytes;
  if (facts.immutable || !facts.meta.volatile_version) {
    const auto key = facts.key.bytes();
    return kVersionMark + std::string(reinterpret_cast<const char*>(key.data()), key.size()) +
           size_bytes;
  }
  const core::Object* address = &object;
  return kInstanceMark + std::string(reinterpret_cast<const char*>(&address), sizeof address);
}

size_t NodeTable::KeyHash::operator()(const Key& key) const {
  return core::Xxh3(key.name) * 31 + core::Xxh3(key.tag) + key.parent * 0x9E3779B97F4A7C15u;
}

NodeTable::NodeTable(DirRef root, int64_t mtime, Limits limits) : limits_(limits) {
  Node::Facts facts;
  facts.id = kRootNode;
  facts.dir = std::move(root);
  facts.tag = kDirectoryMark;
  facts.ino = kRootNode;
  facts.mtime = mtime;
  core::MutexLock lock(mu_);
  nodes_.emplace(kRootNode, Known{std::make_shared<Node>(std::move(facts)), 1});
}

std::shared_ptr<Node> NodeTable::Get(NodeId id) const {
  core::MutexLock lock(mu_);
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second.node;
}

// A version is found under its own tag or, where it came by a promise, under that one's, which it
// may bind. A promise alone means the node it was made for, until an open has found that to be
// another version than the current one.
const std::shared_ptr<Node>* NodeTable::FindLocked(NodeId parent, std::string_view name,
                                                   const NodeInit& init) const {
  const auto find = [&](const std::string& tag) REQUIRES(mu_) -> const std::shared_ptr<Node>* {
    const auto found = by_key_.find(Key{parent, name, tag});
    if (found == by_key_.end()) return nullptr;
    const auto& node = nodes_.at(found->second).node;
    return node->retired() || node->HasRefusedBytes() ? nullptr : &node;
  };
  if (!init.promise) {
    return find(init.object ? VersionTag(*init.object) : kDirectoryMark + init.dir.key);
  }
  if (!init.object) return find(PromiseTag(*init.promise));
  const std::string version = VersionTag(*init.object);
  if (const auto* const node = find(version)) return node;
  const auto* const node = find(PromiseTag(*init.promise));
  return node != nullptr && (*node)->Bind(version, init.object->size()) ? node : nullptr;
}

core::Result<std::shared_ptr<Node>> NodeTable::Remember(const std::shared_ptr<Node>& parent,
                                                        std::string_view name, NodeInit init) {
  Node::Facts facts;
  facts.parent = parent;
  facts.name = name;
  facts.kind = init.kind;
  facts.tag = init.object    ? VersionTag(*init.object)
              : init.promise ? PromiseTag(*init.promise)
                             : kDirectoryMark + init.dir.key;
  facts.size = init.object ? init.object->size() : init.promise ? init.promise->size : 0;
  facts.mtime = init.mtime;
  facts.dir = init.dir;

  std::shared_ptr<core::Object> replaced, let_go;  // outside the lock
  core::MutexLock lock(mu_);
  if (const auto* const found = FindLocked(parent->facts().id, name, init)) {
    const NodeId id = (*found)->facts().id;
    Known& known = nodes_.at(id);
    ++known.lookups;
    if (init.object) {
      if (!known.node->object()) let_go = HoldObject(id);
      replaced = known.node->Refresh(std::move(init.object), init.fresh_until);
    }
    return known.node;
  }
  if (nodes_.size() >= limits_.nodes) {
    ++refused_;
    return core::MakeError(core::Code::kBusy, "the mount's table of names is full");
  }
  facts.id = ++last_id_;
  facts.ino = InodeLocked(parent->facts().ino, name);
  auto node = std::make_shared<Node>(std::move(facts));
  const auto& kept = node->facts();
  by_key_.erase(Key{parent->facts().id, kept.name, kept.tag});  // of refused bytes, if it is there
  by_key_.emplace(Key{parent->facts().id, kept.name, kept.tag}, kept.id);
  by_ino_.emplace(kept.ino, node.get());
  nodes_.emplace(kept.id, Known{node, 1});
  if (init.object) {
    let_go = HoldObject(kept.id);
    replaced = node->Refresh(std::move(init.object), init.fresh_until);
  }
  return node;
}

bool NodeTable::Refresh(const Node& node, std::shared_ptr<core::Object> object,
                        core::TimePoint fresh_until) {
  std::shared_ptr<core::Object> replaced, let_go;  // outside the lock
  const std::string version = VersionTag(*object);
  core::MutexLock lock(mu_);
  const NodeId id = node.facts().id;
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return node.version_tag() == version;
  Node& known = *found->second.node;
  if (known.HasRefusedBytes()) return false;
  if (!known.Bind(version, object->size())) {
    // The next lookup by its promise is of another version.
    ForgetKeyLocked(known);
    return false;
  }
  if (!known.object()) let_go = HoldObject(id);
  replaced = known.Refresh(std::move(object), fresh_until);
  return true;
}

// A node without a version of its own keeps its object: its tag is the object's address.
std::shared_ptr<core::Object> NodeTable::HoldObject(NodeId id) {
  if (nodes_.at(id).node->version_tag().front() == kInstanceMark) return nullptr;
  holding_objects_.push_back(id);
  if (holding_objects_.size() <= limits_.objects) return nullptr;
  const auto oldest = nodes_.find(holding_objects_.front());
  holding_objects_.pop_front();
  return oldest == nodes_.end() ? nullptr : oldest->second.node->Refresh(nullptr, {});
}

bool NodeTable::Forget(NodeId id, uint64_t lookups) {
  std::shared_ptr<Node> dropped;  // with its object and its parents, outside the lock
  core::MutexLock lock(mu_);
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || id == kRootNode) return false;
  Known& known = found->second;
  known.lookups -= std::min(lookups, known.lookups);
  if (known.lookups > 0) return false;
  const auto& facts = known.node->facts();
  ForgetKeyLocked(*known.node);
  const auto [first, last] = by_ino_.equal_range(facts.ino);
  for (auto it = first; it != last; ++it) {
    if (it->second != known.node.get()) continue;
    by_ino_.erase(it);
    break;
  }
  dropped = std::move(known.node);
  nodes_.erase(found);
  return true;
}

// Another node may have its key by now.
void NodeTable::ForgetKeyLocked(const Node& node) {
  const auto& facts = node.facts();
  const auto found = by_key_.find(Key{facts.parent->facts().id, facts.name, facts.tag});
  if (found != by_key_.end() && found->second == facts.id) by_key_.erase(found);
}

// The hash of the path, one name at a time. Two live names with one hash: the later one gets a
// salted one, unique but no longer the same after a remount.
uint64_t NodeTable::InodeLocked(uint64_t parent_ino, std::string_view name) const {
  for (uint64_t salt = 0;; ++salt) {
    const uint64_t candidate = InodeCandidate(parent_ino, name, salt);
    if (IsReservedInode(candidate)) continue;
    const auto holder = by_ino_.find(candidate);
    if (holder == by_ino_.end() || IsName(*holder->second, parent_ino, name)) return candidate;
  }
}

uint64_t NodeTable::InodeOf(const Node& parent, std::string_view name) const {
  core::MutexLock lock(mu_);
  return InodeLocked(parent.facts().ino, name);
}

size_t NodeTable::size() const {
  core::MutexLock lock(mu_);
  return nodes_.size();
}

uint64_t NodeTable::refused() const {
  core::MutexLock lock(mu_);
  return refused_;
}

}  // namespace dartfs::fs
