// ChunkTree: who fetches a chunk from whom: the tree over the ranked nodes of a view, or over those
// of them that read the object now. Constant once built; share it freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "p2p/preorder_tree.h"
#include "p2p/view.h"

namespace dartfs::p2p {

using ReaderIds = std::shared_ptr<const std::vector<std::string>>;  // sorted

class ChunkTree {
 public:
  // Over the Ready members of `view`; with `readers`, over those of them that are among it, unless
  // fewer than two are: then over all again (WIRE.md section 6).
  ChunkTree(ViewPtr view, const ReaderIds& readers, uint64_t key, uint32_t fanout);

  uint64_t key() const { return key_; }
  uint32_t size() const { return tree_.size; }
  std::string_view IdAt(uint32_t position) const;
  const Member& MemberAt(uint32_t position) const;
  // nullopt: not in the tree.
  std::optional<uint32_t> PositionOf(std::string_view id) const;
  const PreorderTree& shape() const { return tree_; }
  const ViewPtr& view() const { return view_; }

  // Whom `id` asks, the nearest first: parent, grandparent, ..., root. Of the root none; of one
  // that is not in the tree the root alone.
  std::vector<uint32_t> Upstreams(std::string_view id) const;

 private:
  const ViewPtr view_;
  const uint64_t key_;
  std::vector<uint32_t> order_;      // of view_->ready(), by position
  std::vector<uint32_t> positions_;  // by index of view_->ready(); PreorderTree::kNone: not in it
  PreorderTree tree_;
};

using ChunkTreePtr = std::shared_ptr<const ChunkTree>;

// Whether `id` owns the chunk: it is among the first `replicas` of its rank over all Ready members,
// whoever reads (spec/engine.md 3.7). Without a cluster everything is owned.
bool OwnsChunk(const View& view, std::string_view id, uint64_t key, size_t replicas);

// The trees of late, as a block after another asks for the same. Not thread-safe.
class ChunkTrees {
 public:
  ChunkTrees(uint32_t fanout, size_t capacity) : fanout_(fanout), capacity_(capacity) {}
  // Of these very objects: who has got another view or set asks for another tree.
  ChunkTreePtr Get(const ViewPtr& view, const ReaderIds& readers, uint64_t key);
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t key;
    ViewPtr view;
    ReaderIds readers;
    ChunkTreePtr tree;
  };
  const uint32_t fanout_;
  const size_t capacity_;
  std::list<Entry> entries_;  // the one used last first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> by_key_;
};

}  // namespace dartfs::p2p
