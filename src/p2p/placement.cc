#include "p2p/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/wire_id.h"

namespace dartfs::p2p {
namespace {

double WeightOf(const PlacedNode& node) { return node.weight > 0 ? node.weight : 1.0; }

struct Ranked {
  uint64_t hash = 0;
  double weight = 1;
  uint32_t index = 0;
};

double Score(const Ranked& node) {
  const double u = (static_cast<double>(node.hash) + 0.5) * 0x1.0p-64;
  // The largest hashes round to 1, whose logarithm is 0.
  if (u >= 1) return std::numeric_limits<double>::infinity();
  return node.weight / -std::log(u);
}

std::vector<Ranked> Hashed(uint64_t key, std::span<const PlacedNode> nodes) {
  std::vector<Ranked> all;
  all.reserve(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    all.push_back({NodeHash(key, nodes[i].id), WeightOf(nodes[i]), i});
  }
  return all;
}

// Of nodes of one weight.
struct Before {
  std::span<const PlacedNode> nodes;
  bool operator()(const Ranked& a, const Ranked& b) const {
    if (a.hash != b.hash) return a.hash > b.hash;
    return nodes[a.index].id < nodes[b.index].id;
  }
};

// A class of one weight, in its own order, and how much of it has been taken.
struct WeightClass {
  std::span<const Ranked> rest;
  double score = 0;  // of the first that is left

  void Take() {
    rest = rest.subspan(1);
    if (!rest.empty()) score = Score(rest.front());
  }
};

// Merging the classes, rather than sorting by score, keeps the integers' order within each of them,
// whatever rounding does to the scores.
std::vector<uint32_t> Merge(std::vector<WeightClass> classes, std::span<const PlacedNode> nodes,
                            size_t count) {
  std::vector<uint32_t> order;
  order.reserve(count);
  const auto after = [nodes](const WeightClass& a, const WeightClass& b) {
    if (a.score != b.score) return a.score < b.score;
    return nodes[a.rest.front().index].id > nodes[b.rest.front().index].id;
  };
  std::make_heap(classes.begin(), classes.end(), after);
  while (order.size() < count) {
    std::pop_heap(classes.begin(), classes.end(), after);
    order.push_back(classes.back().rest.front().index);
    classes.back().Take();
    if (classes.back().rest.empty()) {
      classes.pop_back();
    } else {
      std::push_heap(classes.begin(), classes.end(), after);
    }
  }
  return order;
}

std::vector<WeightClass> Classes(std::vector<Ranked>& all, const Before& before) {
  std::sort(all.begin(), all.end(), [&before](const Ranked& a, const Ranked& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return before(a, b);
  });
  std::vector<WeightClass> classes;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    while (end < all.size() && all[end].weight == all[begin].weight) ++end;
    classes.push_back({std::span(all).subspan(begin, end - begin), Score(all[begin])});
    begin = end;
  }
  return classes;
}

}  // namespace

uint64_t NodeHash(uint64_t key, std::string_view node_id) {
  return core::Fmix64(core::Fnv1a64().AddLittleEndian(key).Add(node_id).value());
}

bool RanksBefore(uint64_t key, const PlacedNode& a, const PlacedNode& b) {
  const Ranked first{NodeHash(key, a.id), WeightOf(a), 0};
  const Ranked second{NodeHash(key, b.id), WeightOf(b), 1};
  if (first.weight != second.weight) {
    const double difference = Score(first) - Score(second);
    if (difference != 0) return difference > 0;
  } else if (first.hash != second.hash) {
    return first.hash > second.hash;
  }
  return a.id < b.id;
}

std::vector<uint32_t> Rank(uint64_t key, std::span<const PlacedNode> nodes) {
  return RankTop(key, nodes, nodes.size());
}

std::vector<uint32_t> RankTop(uint64_t key, std::span<const PlacedNode> nodes, size_t count) {
  count = std::min(count, nodes.size());
  if (count == 0) return {};
  std::vector<Ranked> all = Hashed(key, nodes);
  const Before before{nodes};
  const bool mixed = std::any_of(all.begin(), all.end(), [&all](const Ranked& node) {
    return node.weight != all.front().weight;
  });
  if (mixed) return Merge(Classes(all, before), nodes, count);
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(count), all.end(), before);
  std::vector<uint32_t> order;
  order.reserve(count);
  for (size_t i = 0; i < count; ++i) order.push_back(all[i].index);
  return order;
}

}  // namespace dartfs::p2p
