// The store on this machine's disk: how fast blocks go in and come out, by the ways of writing that
// were weighed, and how soon a large cache is ready.
//
// DARTFS_BENCH_LARGE=1: a gigabyte a write run, and 250,000 objects with a million blocks to open.
// DARTFS_BENCH_DIR: where; /var/tmp otherwise.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/base/scheduler.h"
#include "core/base/unique_fd.h"
#include "core/store/index.h"
#include "core/store/layout.h"
#include "core/store/store.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

namespace dartfs::core {
namespace {

bool Large() { return std::getenv("DARTFS_BENCH_LARGE") != nullptr; }
uint64_t WriteBytes() { return uint64_t{Large() ? 1024U : 16U} << 20; }

class BenchDir {
 public:
  BenchDir() {
    const char* const base = std::getenv("DARTFS_BENCH_DIR");
    path_ = std::string(base != nullptr ? base : "/var/tmp") + "/dartfs-bench.XXXXXX";
    path_ = ::mkdtemp(path_.data());
  }
  ~BenchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::shared_ptr<AlignedBuffer> FullBlock(char fill) {
  auto buffer = std::make_shared<AlignedBuffer>(AlignedBuffer::Allocate(Grid().block_size));
  std::memset(buffer->data(), fill, buffer->size());
  return buffer;
}

StoreKey KeyNumber(uint64_t number) {
  std::array<std::byte, StoreKey::kBytes> bytes;
  const auto digest = Sha256(std::to_string(number));
  std::memcpy(bytes.data(), digest.data(), bytes.size());
  return StoreKey(bytes);
}

ObjectMeta MetaNumber(uint64_t number, uint64_t size) {
  ObjectMeta meta;
  meta.id = "https://origin.example/images/" + std::to_string(number) + ".img";
  meta.version = "e:\"0123456789abcdef\"";
  meta.size = size;
  return meta;
}

// The raw choice, without a store: one thread, 4 MiB at a time, sync included.
void BM_WriteMode(benchmark::State& state) {
  const auto block = FullBlock('x');
  const int open_flags = state.range(0) == 1 ? O_DIRECT : 0;
  const int write_flags = state.range(0) == 2 ? RWF_DONTCACHE : 0;
  const BenchDir dir;
  const std::string path = dir.path() + "/file";
  for (auto _ : state) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | open_flags, 0600));
    if (::ftruncate(fd.get(), static_cast<off_t>(WriteBytes())) != 0) return;
    for (uint64_t at = 0; at < WriteBytes(); at += block->size()) {
      iovec part = {block->data(), block->size()};
      if (::pwritev2(fd.get(), &part, 1, static_cast<off_t>(at), write_flags) < 0) {
        state.SkipWithError("the file system refuses this way of writing");
        return;
      }
    }
    ::fdatasync(fd.get());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * WriteBytes()));
}
BENCHMARK(BM_WriteMode)
    ->ArgName("buffered0_direct1_dontcache2")
    ->DenseRange(0, 2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

struct OpenedStore {
  explicit OpenedStore(const std::string& dir, DiskIoOptions::Backend backend) {
    io = MakeDiskIo({.backend = backend}).value();
    StoreOptions options;
    options.dir = dir;
    options.limit_bytes = uint64_t{1} << 40;
    store = Store::Open(options, *io, *scheduler).value();
  }
  ~OpenedStore() {
    store.reset();
    io->Stop();
  }
  std::unique_ptr<Scheduler> scheduler = MakeThreadScheduler("bench", 1, RealClock());
  std::unique_ptr<DiskIo> io;
  std::unique_ptr<Store> store;
};

// Up to eight blocks under way, as flights would; checksums, commits and the last sync included.
void BM_StoreWrite(benchmark::State& state) {
  const auto block = FullBlock('x');
  const uint64_t blocks = WriteBytes() / block->size();
  uint64_t number = 0;
  const BenchDir dir;
  OpenedStore opened(dir.path() + "/cache", static_cast<DiskIoOptions::Backend>(state.range(0)));
  for (auto _ : state) {
    ++number;
    auto object = opened.store->OpenObject(KeyNumber(number), MetaNumber(number, WriteBytes()));
    std::atomic<uint64_t> done = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      while (i - done.load() >= 8) ::usleep(50);
      opened.store->Write(*object, i, block, [&](Status) { ++done; });
    }
    while (done.load() < blocks) ::usleep(50);
    if (!opened.store->Flush()) state.SkipWithError("flush failed");
    state.PauseTiming();
    if (!opened.store->DropObject(*object)) state.SkipWithError("drop failed");
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * WriteBytes()));
}
BENCHMARK(BM_StoreWrite)
    ->ArgName("uring1_pool2")
    ->DenseRange(1, 2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// 128 KiB reads of an object whose file is in the page cache; checked before, or for the first
// time.
void BM_StoreRead(benchmark::State& state) {
  const bool first_time = state.range(0) == 1;
  const auto block = FullBlock('x');
  const uint64_t blocks = WriteBytes() / block->size();
  const BenchDir dir;
  std::vector<std::byte> into(128 << 10);
  auto opened = std::make_unique<OpenedStore>(dir.path() + "/cache", DiskIoOptions::Backend::kAuto);
  const ObjectMeta meta = MetaNumber(1, WriteBytes());
  auto object = opened->store->OpenObject(KeyNumber(1), meta).value();
  for (uint64_t i = 0; i < blocks; ++i) {
    std::promise<void> done;
    opened->store->Write(object, i, block, [&](Status) { done.set_value(); });
    done.get_future().wait();
  }
  const auto read_all = [&] {
    for (uint64_t i = 0; i < blocks; ++i) {
      for (uint64_t at = 0; at < block->size(); at += into.size()) {
        BlockPin pin = opened->store->Pin(object, i);
        if (opened->store->TryRead(pin, at, into)) continue;
        std::promise<void> done;
        opened->store->Read(std::move(pin), at, into, [&](Status) { done.set_value(); });
        done.get_future().wait();
      }
    }
  };
  read_all();
  for (auto _ : state) {
    if (first_time) {
      state.PauseTiming();
      object.reset();
      opened.reset();
      opened = std::make_unique<OpenedStore>(dir.path() + "/cache", DiskIoOptions::Backend::kAuto);
      object = opened->store->OpenObject(KeyNumber(1), meta).value();
      state.ResumeTiming();
    }
    read_all();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * WriteBytes()));
}
BENCHMARK(BM_StoreRead)
    ->ArgName("unchecked")
    ->DenseRange(0, 1)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// An index of 250,000 objects of four blocks (a hundredth of that by default), made without files.
void MakeIndex(const std::string& dir, uint64_t objects) {
  const Grid grid;
  (void)Layout::Open(dir, grid).value();
  Index::Chunks chunks;
  auto index = Index::Open({.dir = dir + "/index"}, &chunks).value();
  constexpr uint64_t kObjectsPerCommit = 2500;
  for (uint64_t first = 0; first < objects; first += kObjectsPerCommit) {
    IndexBatch batch;
    for (uint64_t i = first; i < std::min(objects, first + kObjectsPerCommit); ++i) {
      const StoreKey key = KeyNumber(i);
      batch.objects.emplace_back(key, MetaNumber(i, 4 * grid.block_size));
      batch.chunks.push_back({{key, 0}, {.blocks = 15, .object_size = 4 * grid.block_size}});
      for (uint64_t block = 0; block < 4; ++block) {
        batch.sums.push_back({key, block, std::vector<uint64_t>(16, i)});
      }
    }
    if (!index->Commit(batch)) std::abort();
  }
  if (!index->Close()) std::abort();
}

void BM_StoreOpen(benchmark::State& state) {
  const bool after_kill = state.range(0) == 1;
  const uint64_t objects = Large() ? 250'000 : 2'500;
  const BenchDir dir;
  const std::string cache = dir.path() + "/cache";
  MakeIndex(cache, objects);
  for (auto _ : state) {
    state.PauseTiming();
    if (after_kill) std::filesystem::remove(cache + "/index/seal");
    state.ResumeTiming();
    auto opened = std::make_unique<OpenedStore>(cache, DiskIoOptions::Backend::kAuto);
    state.PauseTiming();
    if (opened->store->Stats().blocks != 4 * objects) state.SkipWithError("not all were found");
    opened.reset();
    state.ResumeTiming();
  }
  state.counters["index_MiB"] =
      static_cast<double>(std::filesystem::file_size(cache + "/index/data.mdb")) / (1 << 20);
}
BENCHMARK(BM_StoreOpen)
    ->ArgName("after_kill")
    ->DenseRange(0, 1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dartfs::core
