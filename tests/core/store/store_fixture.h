// StoreFixture: a store in a directory of its own, with tiny blocks, over a DiskIo that can be told
// to fail. The words of a test:
//
//   Start, Stop         the store; Start after Stop is a restart
//   Crash               what kill -9 leaves: the directory as it is now, and a store on it
//   Object              opens the object of that name and number of bytes
//   Put, Get            one whole block, through Write and Pin + Read; contents follow from the
//   names
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "core/base/hash.h"
#include "core/store/store.h"
#include "fake/faulty_disk_io.h"
#include "fake/manual_scheduler.h"
#include "fake/seeded_random.h"

namespace dartfs::core {

inline constexpr Grid kTinyGrid = {
    .block_size = 16 << 10, .chunk_size = 64 << 10, .granule_size = 4 << 10};
inline constexpr auto kLong = std::chrono::seconds(20);

inline StoreKey KeyNamed(const std::string& name) {
  const auto digest = Sha256(name);
  std::array<std::byte, StoreKey::kBytes> bytes;
  std::memcpy(bytes.data(), digest.data(), bytes.size());
  return StoreKey(bytes);
}

inline ObjectMeta MetaNamed(const std::string& name, uint64_t size) {
  ObjectMeta meta;
  meta.id = "http://origin.example/" + name;
  meta.version = "e:\"1\"";
  meta.size = size;
  meta.etag = "\"1\"";
  meta.content_type = "application/octet-stream";
  return meta;
}

// What a block holds: other bytes for every name, block and offset.
inline std::vector<std::byte> BytesOf(const std::string& name, uint64_t block, uint64_t length) {
  std::mt19937_64 engine(Xxh3(std::string_view(name)) ^ (block * 0x9E3779B97F4A7C15U));
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    const uint64_t word = engine();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, bytes.size() - i));
  }
  return bytes;
}

inline std::shared_ptr<const AlignedBuffer> ToBuffer(const std::vector<std::byte>& bytes) {
  auto buffer = std::make_shared<AlignedBuffer>(AlignedBuffer::Allocate(bytes.size()));
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

inline Status Await(const std::function<void(IoDone)>& start) {
  auto promise = std::make_shared<std::promise<Status>>();
  auto future = promise->get_future();
  start([promise](Status status) { promise->set_value(std::move(status)); });
  if (future.wait_for(kLong) != std::future_status::ready) {
    return MakeError(Code::kDeadlineExceeded, "no completion");
  }
  return future.get();
}

// True once the condition holds; polls, as a deadline for what other threads do.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// A limit of this process, for the scope.
class ScopedLimit {
 public:
  ScopedLimit(__rlimit_resource resource, rlim_t soft) : resource_(resource) {
    EXPECT_EQ(::getrlimit(resource, &before_), 0);
    const rlimit now = {soft, before_.rlim_max};
    EXPECT_EQ(::setrlimit(resource, &now), 0);
  }
  ~ScopedLimit() { ::setrlimit(resource_, &before_); }
  ScopedLimit(const ScopedLimit&) = delete;
  ScopedLimit& operator=(const ScopedLimit&) = delete;

 private:
  const __rlimit_resource resource_;
  rlimit before_ = {};
};

// How many descriptors this process has open.
inline size_t CountDescriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class StoreFixture : public ::testing::Test {
 public:
  struct Held {
    std::string name;
    uint64_t size = 0;
    std::shared_ptr<StoredObject> object;
  };
  enum class Got { kHit, kMiss, kDropped, kWrong, kError };

 protected:
  StoreFixture() {
    // Not below a tmpfs: O_DIRECT is to be exercised. A test's child works within its directory.
    const char* const base = std::getenv("DARTFS_STORE_TEST_BASE");
    root_ = std::string(base != nullptr ? base : "/var/tmp") + "/dartfs-store-test.XXXXXX";
    root_ = ::mkdtemp(root_.data());
    options_.dir = root_ + "/cache";
    options_.grid = kTinyGrid;
    options_.limit_bytes = uint64_t{256} << 20;
    options_.commit_interval = std::chrono::milliseconds(20);
    options_.reserve_fraction = 0;
    options_.least_lent_bytes = 0;
    options_.index_map_bytes = uint64_t{1} << 30;
    MakeIo();
  }
  ~StoreFixture() override {
    Stop();
    faulty_.reset();
    io_->Stop();
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void MakeIo() {
    DiskIoOptions io_options;
#if defined(__SANITIZE_THREAD__)
    io_options.backend = DiskIoOptions::Backend::kPool;
#endif
    auto io = MakeDiskIo(io_options);
    ASSERT_TRUE(io);
    io_ = *std::move(io);
    faulty_ = std::make_unique<FaultyDiskIo>(*io_);
  }

  Status TryStart() {
    auto store = Store::Open(options_, *faulty_, scheduler_);
    if (!store) return store.error();
    store_ = *std::move(store);
    return {};
  }
  void Start() {
    const Status started = TryStart();
    ASSERT_TRUE(started) << started.error().ToString();
  }
  void Stop() {
    if (faulty_ != nullptr) faulty_->Release();
    store_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }
  // The directory as a kill would leave it, copied; the old store is stopped unheard.
  void Crash() {
    const std::string copy = root_ + "/cache-" + std::to_string(++crashes_);
    CopyDirectory(copy);
    Stop();
    std::filesystem::remove_all(options_.dir);
    options_.dir = copy;
    Start();
  }
  // A file of LMDB is only whole between two commits, so that no other process's copy of it could
  // be trusted; a copy that saw no commit begin or end is what a kill leaves. The data afterwards:
  // what is newer there than the index, a kill would have left too.
  void CopyDirectory(const std::string& to) {
    namespace fs = std::filesystem;
    const std::string index = options_.dir + "/index";
    for (bool whole = false; !whole;) {
      fs::remove_all(to);
      fs::create_directories(to);
      const auto before = fs::last_write_time(index + "/data.mdb");
      const uint64_t seq = store_ != nullptr ? store_->Stats().commit_seq : 0;
      fs::copy(index, to + "/index", fs::copy_options::recursive);
      whole = before == fs::last_write_time(index + "/data.mdb") &&
              seq == (store_ != nullptr ? store_->Stats().commit_seq : 0);
    }
    const std::string command =
        "cp -a --sparse=always '" + options_.dir + "/objects' '" + to + "/' 2>/dev/null";
    (void)!std::system(command.c_str());
    for (const auto& entry : fs::directory_iterator(options_.dir)) {
      if (!entry.is_regular_file()) continue;
      fs::copy_file(entry.path(), to + "/" + entry.path().filename().string());
    }
  }

  Held Object(const std::string& name, uint64_t size) {
    auto object = store_->OpenObject(KeyNamed(name), MetaNamed(name, size));
    EXPECT_TRUE(object) << object.error().ToString();
    return {name, size, object ? *std::move(object) : nullptr};
  }
  Status Put(const Held& held, uint64_t block) {
    const uint64_t length = options_.grid.BlockLength(held.size, block);
    return Await([&](IoDone done) {
      store_->Write(held.object, block, ToBuffer(BytesOf(held.name, block, length)),
                    std::move(done));
    });
  }
  void PutAll(const Held& held) {
    for (uint64_t i = 0; i < options_.grid.BlockCount(held.size); ++i) {
      const Status status = Put(held, i);
      ASSERT_TRUE(status) << status.error().ToString();
    }
  }
  Got Get(const Held& held, uint64_t block) {
    return GetPart(held, block, 0, options_.grid.BlockLength(held.size, block));
  }
  Got GetPart(const Held& held, uint64_t block, uint64_t offset, uint64_t bytes) {
    BlockPin pin = store_->Pin(held.object, block);
    if (!pin) return Got::kMiss;
    const auto whole = BytesOf(held.name, block, options_.grid.BlockLength(held.size, block));
    const std::vector<std::byte> expected(whole.begin() + static_cast<ptrdiff_t>(offset),
                                          whole.begin() + static_cast<ptrdiff_t>(offset + bytes));
    std::vector<std::byte> got(bytes);
    if (!store_->TryRead(pin, offset, got)) {
      const Status status =
          Await([&](IoDone done) { store_->Read(std::move(pin), offset, got, std::move(done)); });
      if (!status) return status.error().code == Code::kCorrupt ? Got::kDropped : Got::kError;
    }
    return got == expected ? Got::kHit : Got::kWrong;
  }
  // How many blocks are held and right; a wrong one fails the test.
  uint64_t CountHits(const Held& held) {
    uint64_t hits = 0;
    for (uint64_t i = 0; i < options_.grid.BlockCount(held.size); ++i) {
      const Got got = Get(held, i);
      EXPECT_NE(got, Got::kWrong) << held.name << " block " << i;
      hits += got == Got::kHit ? 1 : 0;
    }
    return hits;
  }

  std::string PathOf(const std::string& name) const {
    const std::string hex = KeyNamed(name).ToHex();
    return options_.dir + "/objects/" + hex.substr(0, 2) + "/" + hex.substr(2);
  }
  static void FlipBit(const std::string& path, uint64_t offset, unsigned bit) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << path;
    unsigned char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, static_cast<off_t>(offset)), 1) << path << " " << offset;
    byte = static_cast<unsigned char>(byte ^ 1U << bit);
    ASSERT_EQ(::pwrite(fd, &byte, 1, static_cast<off_t>(offset)), 1);
    ::close(fd);
  }
  // Bytes that the objects' files take of the disk.
  uint64_t DiskBytes() const {
    uint64_t bytes = 0;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(options_.dir + "/objects", ignored)) {
      struct stat st = {};
      if (::lstat(entry.path().c_str(), &st) == 0 && S_ISREG(st.st_mode)) {
        bytes += static_cast<uint64_t>(st.st_blocks) * 512;
      }
    }
    return bytes;
  }

  std::string root_;
  StoreOptions options_;
  ManualScheduler scheduler_;
  std::unique_ptr<DiskIo> io_;
  std::unique_ptr<FaultyDiskIo> faulty_;
  std::unique_ptr<Store> store_;
  int crashes_ = 0;
};

}  // namespace dartfs::core
