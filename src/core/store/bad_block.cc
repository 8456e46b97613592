#include "core/store/bad_block.h"

#include <utility>

#include "core/base/log.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kReportedDrops = 10;  // in the log; the rest only in the counters

}  // namespace

GranuleSums FindBlockSums(StoreCore& core, const std::shared_ptr<StoredObject>& object,
                          uint64_t block, const ReadView& view) {
  if (view.sums != nullptr) return view.sums;
  const auto other = object->other_key();
  auto sums = core.index->GetSums(object->key(), block);
  if (!sums && other) sums = core.index->GetSums(*other, block);
  if (!sums) sums = core.index->GetSums(object->key(), block);
  if (!sums) return nullptr;
  auto found = std::make_shared<const std::vector<uint64_t>>(*std::move(sums));
  object->KeepSums(block, view.generation, found);
  return found;
}

Error DropBadBlock(StoreCore& core, Committer& committer, const BadBlock& bad, Error error) {
  const auto dropped = bad.object->Drop(bad.block, bad.generation);
  if (dropped.empty()) return error;
  core.counters.corrupt_granules.fetch_add(bad.bad_granules, std::memory_order_relaxed);
  core.counters.blocks.fetch_sub(dropped.size(), std::memory_order_relaxed);
  Departure departure;
  departure.object = bad.object;
  for (const auto& each : dropped) {
    departure.blocks.push_back(each.block);
    departure.recorded |= each.recorded;
  }
  committer.NoteDeparture(std::move(departure));
  const uint64_t number = core.counters.reported_drops.fetch_add(1, std::memory_order_relaxed);
  if (number < kReportedDrops) {
    LOG_WARN("cache block {} of {} dropped{}, to be fetched again: {}{}", bad.block,
             bad.object->key().ToHex(),
             dropped.size() > 1 ? ", with all of its object, as its file is lent" : "",
             error.context,
             number + 1 == kReportedDrops ? " (more of these are only counted)" : "");
  }
  return error;
}

}  // namespace dartfs::core
