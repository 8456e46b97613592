// make_index DIR OBJECTS: a cache directory whose index names so many objects of four blocks each,
// without their files; for start.sh.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/grid.h"
#include "core/base/hash.h"
#include "core/store/index.h"
#include "core/store/layout.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kBlocks = 4;
constexpr uint64_t kObjectsPerCommit = 2500;

StoreKey KeyOfNumber(uint64_t number) {
  std::array<std::byte, StoreKey::kBytes> key{};
  const auto hash = Sha256(std::to_string(number));
  std::copy_n(hash.begin(), key.size(), key.begin());
  return StoreKey(key);
}

void Add(uint64_t number, uint64_t size, size_t granules, IndexBatch* batch) {
  const StoreKey key = KeyOfNumber(number);
  ObjectMeta meta;
  meta.id = "https://mirror.example/images/object-" + std::to_string(number) + ".img";
  meta.version = "e:\"" + std::to_string(number) + "\"";
  meta.etag = "\"" + std::to_string(number) + "\"";
  meta.size = size;
  batch->objects.emplace_back(key, meta);
  batch->chunks.push_back({{key, 0}, {.blocks = (1 << kBlocks) - 1, .object_size = size}});
  for (uint64_t block = 0; block < kBlocks; ++block) {
    batch->sums.push_back({key, block, std::vector<uint64_t>(granules, number)});
  }
}

int Make(const std::string& dir, uint64_t objects) {
  const Grid grid;
  if (const auto layout = Layout::Open(dir, grid); !layout) {
    std::fprintf(stderr, "make_index: %s\n", layout.error().context.c_str());
    return 1;
  }
  Index::Chunks chunks;
  auto index = Index::Open({.dir = dir + "/index"}, &chunks);
  if (!index) return 1;
  const uint64_t size = kBlocks * grid.block_size;
  const auto granules = static_cast<size_t>(grid.block_size / grid.granule_size);
  for (uint64_t first = 0; first < objects; first += kObjectsPerCommit) {
    IndexBatch batch;
    const uint64_t end = std::min(objects, first + kObjectsPerCommit);
    for (uint64_t i = first; i < end; ++i) Add(i, size, granules, &batch);
    if (!(*index)->Commit(batch)) return 1;
  }
  return (*index)->Close() ? 0 : 1;
}

}  // namespace
}  // namespace dartfs::core

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_index DIR OBJECTS\n");
    return 2;
  }
  return dartfs::core::Make(argv[1], std::strtoull(argv[2], nullptr, 10));
}
