// What runs for each request, read or block, without I/O: the costs that must not grow.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/base/identity.h"
#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/base/url.h"
#include "core/engine/admission.h"
#include "core/engine/held_blocks.h"
#include "core/engine/memory_budget.h"
#include "core/engine/read_ahead.h"
#include "fs/handle_table.h"
#include "fs/name_mapping.h"
#include "fs/node_table.h"

namespace dartfs {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Granules of a block that is in the cache, as after its receipt.
void BM_Checksum(benchmark::State& state) {
  const auto buffer = core::AlignedBuffer::Allocate(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(core::Xxh3(buffer.span()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(BM_Checksum)->Arg(256 << 10)->Arg(4 << 20);

void BM_IdentityOfUrl(benchmark::State& state) {
  const core::IdentityOptions options;
  for (auto _ : state) {
    const auto url = core::ParseUrl("https://mirror.example:8443/images/a%20b/disk.img?v=1&x=2");
    benchmark::DoNotOptimize(core::MakeIdentity(*url, options));
  }
}
BENCHMARK(BM_IdentityOfUrl);

void BM_AdmitBlockHead(benchmark::State& state) {
  core::HttpHead head;
  head.status = 206;
  head.headers = {{"Content-Range", "bytes 4194304-8388607/1073741824"},
                  {"Content-Length", "4194304"},
                  {"ETag", "\"5f3a-11\""},
                  {"Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"}};
  core::ExpectedBlock expected;
  expected.first = 4 * kMiB;
  expected.last = 8 * kMiB - 1;
  expected.total = 1024 * kMiB;
  expected.version = "e:\"5f3a-11\"";
  for (auto _ : state) benchmark::DoNotOptimize(core::CheckBlockHead(head, expected));
}
BENCHMARK(BM_AdmitBlockHead);

void BM_ReadAheadSixteenStreams(benchmark::State& state) {
  core::ReadAhead ahead({});
  core::TimePoint now = core::TimePoint{} + std::chrono::hours(1);
  uint64_t step = 0;
  for (auto _ : state) {
    const uint64_t stream = step % 16;
    const uint64_t offset = (stream << 40) + step / 16 * kMiB;
    benchmark::DoNotOptimize(ahead.OnRead(offset, kMiB, now));
    now += std::chrono::microseconds(100);
    ++step;
  }
}
BENCHMARK(BM_ReadAheadSixteenStreams);

void BM_HoldAndRelease(benchmark::State& state) {
  const auto scheduler = core::MakeThreadScheduler("bench", 1, core::RealClock());
  core::HeldBlocks held(64 * 4 * kMiB, *scheduler);
  for (auto _ : state) held.Remove(held.Add("origin", 4 * kMiB, [] {}));
}
BENCHMARK(BM_HoldAndRelease);

void BM_BufferFromTheBudget(benchmark::State& state) {
  const auto scheduler = core::MakeThreadScheduler("bench", 1, core::RealClock());
  core::MemoryBudget budget(64 * kMiB, 4 * kMiB, *scheduler);
  for (auto _ : state) {
    benchmark::DoNotOptimize(budget.TryAcquire("origin", 4 * kMiB, core::Priority::kDemand));
  }
}
BENCHMARK(BM_BufferFromTheBudget);

void BM_LookUpAndForget(benchmark::State& state) {
  fs::NodeTable nodes(fs::DirRef{""}, 0);
  const auto root = nodes.Get(fs::kRootNode);
  uint64_t count = 0;
  for (auto _ : state) {
    fs::NodeInit init;
    init.kind = fs::EntryKind::kDirectory;
    init.dir.key = "d" + std::to_string(count++ % 4096) + "/";
    const auto node = nodes.Remember(root, init.dir.key, init);
    nodes.Forget((*node)->facts().id, 1);
  }
}
BENCHMARK(BM_LookUpAndForget);

void BM_FindHandle(benchmark::State& state) {
  fs::HandleTable<int> table;
  std::vector<fs::HandleId> handles;
  for (int i = 0; i < 1000; ++i) handles.push_back(table.Add(std::make_shared<int>(i)));
  size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.Get(handles[at++ % handles.size()]));
}
BENCHMARK(BM_FindHandle)->ThreadRange(1, 2);

void BM_NameToWireAndBack(benchmark::State& state) {
  for (auto _ : state) {
    const auto wire = fs::NameToWire("Debian GNU Linux (12).qcow2");
    benchmark::DoNotOptimize(fs::SegmentToName(wire->rest));
  }
}
BENCHMARK(BM_NameToWireAndBack);

}  // namespace
}  // namespace dartfs
