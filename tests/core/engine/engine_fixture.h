// A whole engine in one process: a scripted origin, the libcurl client, a store in a fresh
// directory, small blocks. Tests say Put, Open, Read, Restart, origin().
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/engine/engine.h"
#include "core/io/disk_io.h"
#include "core/io/http_client.h"
#include "core/store/store.h"
#include "origin/test_origin.h"

namespace dartfs::core {

inline std::string Pattern(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
  for (char& c : bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x);
  }
  return bytes;
}

inline std::string HexDigestOf(const std::string& algorithm, const std::string& bytes) {
  const auto digester = Digester::Create(algorithm);
  digester->Update(AsBytes(bytes));
  return digester->FinishHex();
}

class EngineTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBlock = 64 * 1024;

  void SetUp() override {
    if (const char* level = getenv("DARTFS_TEST_LOG")) SetLogLevel(level);
    dir_ = (std::filesystem::temp_directory_path() / "dartfs-engine-XXXXXX").string();
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    origin_ = origin::TestOrigin::Start();
    options_.grid.block_size = kBlock;
    options_.grid.chunk_size = 4 * kBlock;
    options_.grid.granule_size = kBlock / 4;
    options_.inflight_bytes = 64 * kBlock;
    options_.first_byte_timeout = std::chrono::milliseconds(1500);
    options_.stall_timeout = std::chrono::milliseconds(1000);
    store_options_.limit_bytes = 64 << 20;
    store_options_.commit_interval = std::chrono::milliseconds(20);
    StartNode();
  }
  void TearDown() override {
    StopNode();
    origin_.reset();
    std::filesystem::remove_all(dir_);
  }

  void StartNode() {
    DiskIoOptions disk;
    disk.backend = DiskIoOptions::Backend::kPool;
    io_ = std::move(MakeDiskIo(disk)).value();
    scheduler_ = MakeThreadScheduler("engine", 3, RealClock());
    StoreOptions store = store_options_;
    store.dir = dir_ + "/cache";
    store.grid = options_.grid;
    auto opened = Store::Open(store, *io_, *scheduler_);
    ASSERT_TRUE(opened) << opened.error().ToString();
    store_ = std::move(*opened);
    http_options_.use_environment_proxies = false;
    http_ = std::move(MakeHttpClient(http_options_)).value();
    engine_ = Engine::Create(options_, *store_, *http_, *scheduler_, RealRandom());
  }
  // All of it stands still; an engine that has been made on it may be destroyed.
  void StopParts() {
    if (engine_ != nullptr) engine_->Stop();
    if (http_ != nullptr) http_->Stop();
    if (store_ != nullptr) store_->Stop();
    if (io_ != nullptr) io_->Stop();
    if (scheduler_ != nullptr) scheduler_->Stop();
  }
  void StopNode() {
    StopParts();
    engine_.reset();
    store_.reset();
    http_.reset();
    io_.reset();
    scheduler_.reset();
  }
  void Restart() {
    StopNode();
    StartNode();
  }

  // Of a path on origin(), or a URL as it is.
  Url UrlOf(const std::string& path) {
    const bool whole = path.find("://") != std::string::npos;
    return std::move(ParseUrl(whole ? path : origin_->Url(path))).value();
  }

  Result<std::shared_ptr<Object>> Open(const std::string& path, OpenOptions options = {}) {
    auto promise = std::make_shared<std::promise<Result<std::shared_ptr<Object>>>>();
    auto future = promise->get_future();
    if (options.deadline == kNoDeadline) options.deadline = Deadline(20);
    engine_->Open(UrlOf(path), std::move(options), [promise](Result<std::shared_ptr<Object>> r) {
      promise->set_value(std::move(r));
    });
    EXPECT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    return future.get();
  }

  TimePoint Deadline(int seconds) { return RealClock().Now() + std::chrono::seconds(seconds); }

  Result<std::string> ReadOn(ObjectReader& reader, uint64_t offset, size_t size,
                             TimePoint deadline = kNoDeadline) {
    auto promise = std::make_shared<std::promise<Result<std::string>>>();
    auto future = promise->get_future();
    if (deadline == kNoDeadline) deadline = Deadline(20);
    reader.Read(offset, size, deadline, [promise](Result<ReadBytes> r) {
      if (!r) {
        promise->set_value(r.error());
        return;
      }
      promise->set_value(
          std::string(reinterpret_cast<const char*>(r->bytes.data()), r->bytes.size()));
    });
    EXPECT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    return future.get();
  }

  std::unique_ptr<ObjectReader> ReaderOf(const std::shared_ptr<Object>& object,
                                         const std::string& authorization = "") {
    return engine_->MakeReader(object, Requester{object->facts().url, authorization});
  }

  // Opens and reads in one; the whole object by default.
  Result<std::string> Read(const std::string& path, uint64_t offset = 0, size_t size = 16 << 20) {
    auto object = Open(path);
    if (!object) return object.error();
    return ReadOn(*ReaderOf(*object), offset, size);
  }

  // As a program reads: 32 KiB after 32 KiB on one handle, on the spot where that works.
  Result<std::string> ReadThrough(const std::string& path) {
    auto object = Open(path);
    if (!object) return object.error();
    auto reader = ReaderOf(*object);
    std::string all((*object)->size(), '\0');
    for (uint64_t at = 0; at < all.size(); at += 32 * 1024) {
      const size_t size = std::min<uint64_t>(32 * 1024, all.size() - at);
      const std::span<char> into(all.data() + at, size);
      if (const auto now = reader->TryRead(at, std::as_writable_bytes(into))) {
        std::memmove(into.data(), now->bytes.data(), size);
        continue;
      }
      auto bytes = ReadOn(*reader, at, size);
      if (!bytes) return bytes.error();
      if (bytes->size() != size) return MakeError(Code::kInternal, "short read");
      std::copy(bytes->begin(), bytes->end(), into.begin());
    }
    return all;
  }

  // Waits until the object's blocks are all in the store.
  bool WaitStored(const std::shared_ptr<Object>& object) {
    const uint64_t blocks = options_.grid.BlockCount(object->size());
    for (int i = 0; i < 1000; ++i) {
      if (store_->PresentBlocks(*object->stored()) == blocks) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  origin::TestOrigin& origin() { return *origin_; }

  std::string dir_;
  EngineOptions options_;
  StoreOptions store_options_;
  HttpClientOptions http_options_;
  std::unique_ptr<origin::TestOrigin> origin_;
  std::unique_ptr<DiskIo> io_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace dartfs::core
