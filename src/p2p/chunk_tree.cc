#include "p2p/chunk_tree.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

constexpr size_t kLeastReaders = 2;

std::optional<uint32_t> IndexOf(std::span<const PlacedNode> nodes, std::string_view id) {
  const auto found =
      std::lower_bound(nodes.begin(), nodes.end(), id,
                       [](const PlacedNode& node, std::string_view key) { return node.id < key; });
  if (found == nodes.end() || found->id != id) return std::nullopt;
  return static_cast<uint32_t>(found - nodes.begin());
}

// Indices of the Ready members among the readers; all where they are too few for a tree.
std::vector<uint32_t> Candidates(std::span<const PlacedNode> ready, const ReaderIds& readers) {
  std::vector<uint32_t> chosen;
  if (readers != nullptr) {
    for (const std::string& reader : *readers) {
      if (const auto index = IndexOf(ready, reader)) chosen.push_back(*index);
    }
    if (chosen.size() >= kLeastReaders) return chosen;
    chosen.clear();
  }
  for (uint32_t i = 0; i < ready.size(); ++i) chosen.push_back(i);
  return chosen;
}

}  // namespace

ChunkTree::ChunkTree(ViewPtr view, const ReaderIds& readers, uint64_t key, uint32_t fanout)
    : view_(std::move(view)), key_(key) {
  const auto ready = view_->ready();
  const std::vector<uint32_t> candidates = Candidates(ready, readers);
  std::vector<PlacedNode> nodes;
  nodes.reserve(candidates.size());
  for (const uint32_t index : candidates) nodes.push_back(ready[index]);
  positions_.assign(ready.size(), PreorderTree::kNone);
  for (const uint32_t index : Rank(key, nodes)) {
    positions_[candidates[index]] = static_cast<uint32_t>(order_.size());
    order_.push_back(candidates[index]);
  }
  tree_ = {static_cast<uint32_t>(order_.size()), fanout};
}

std::string_view ChunkTree::IdAt(uint32_t position) const {
  DARTFS_CHECK(position < order_.size());
  return view_->ready()[order_[position]].id;
}

const Member& ChunkTree::MemberAt(uint32_t position) const { return *view_->Find(IdAt(position)); }

std::optional<uint32_t> ChunkTree::PositionOf(std::string_view id) const {
  const auto index = IndexOf(view_->ready(), id);
  if (!index || positions_[*index] == PreorderTree::kNone) return std::nullopt;
  return positions_[*index];
}

std::vector<uint32_t> ChunkTree::Upstreams(std::string_view id) const {
  if (tree_.size == 0) return {};
  const auto position = PositionOf(id);
  if (!position) return {0};
  std::vector<uint32_t> chain;
  for (uint32_t at = tree_.Parent(*position); at != PreorderTree::kNone; at = tree_.Parent(at)) {
    chain.push_back(at);
  }
  return chain;
}

bool OwnsChunk(const View& view, std::string_view id, uint64_t key, size_t replicas) {
  const auto ready = view.ready();
  if (ready.size() <= std::max(replicas, size_t{1})) return true;
  const auto owners = RankTop(key, ready, std::max(replicas, size_t{1}));
  return std::any_of(owners.begin(), owners.end(),
                     [&](uint32_t owner) { return ready[owner].id == id; });
}

ChunkTreePtr ChunkTrees::Get(const ViewPtr& view, const ReaderIds& readers, uint64_t key) {
  const auto [begin, end] = by_key_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    const auto entry = it->second;
    if (entry->view != view || entry->readers != readers) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->tree;
  }
  if (!entries_.empty() && entries_.size() >= capacity_) {
    const auto last = std::prev(entries_.end());
    const auto [from, to] = by_key_.equal_range(last->key);
    by_key_.erase(std::find_if(from, to, [last](const auto& it) { return it.second == last; }));
    entries_.pop_back();
  }
  entries_.push_front(
      {key, view, readers, std::make_shared<ChunkTree>(view, readers, key, fanout_)});
  by_key_.emplace(key, entries_.begin());
  return entries_.front().tree;
}

}  // namespace dartfs::p2p
