#include "core/engine/object_stream.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>

#include "core/engine/engine_fixture.h"

namespace dartfs::core {
namespace {

class ObjectStreamTest : public EngineTest {
 protected:
  std::unique_ptr<ObjectStream> Stream(const std::shared_ptr<Object>& object, uint64_t offset,
                                       uint64_t length, uint64_t first_blocks = 2) {
    StreamOptions options;
    options.offset = offset;
    options.length = length;
    options.requester = std::make_shared<Requester>(Requester{object->facts().url, ""});
    options.first_blocks = first_blocks;
    return std::make_unique<ObjectStream>(object, options);
  }

  // The next piece's bytes; empty at the end. Waits.
  Result<std::string> Take(ObjectStream& stream, uint64_t max) {
    while (true) {
      auto woken = std::make_shared<std::promise<void>>();
      auto future = woken->get_future();
      const uint64_t at = stream.position();
      RangeStep step = stream.Next(max, [woken] { woken->set_value(); });
      if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
      if (std::holds_alternative<EndOfRange>(step)) return std::string();
      if (auto* memory = std::get_if<MemorySlice>(&step)) {
        return std::string(reinterpret_cast<const char*>(memory->bytes.data()),
                           memory->bytes.size());
      }
      if (auto* file = std::get_if<FileSlice>(&step)) return ReadFile(stream, at, *file);
      if (future.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
        return MakeError(Code::kDeadlineExceeded, "never woken");
      }
    }
  }

  Result<std::string> ReadFile(ObjectStream& stream, uint64_t at, FileSlice& slice) {
    std::string bytes(slice.length, '\0');
    std::promise<Status> read;
    auto future = read.get_future();
    store_->Read(std::move(slice.pin), slice.offset, std::as_writable_bytes(std::span(bytes)),
                 [&](Status status) { read.set_value(std::move(status)); });
    if (!future.get()) stream.Rewind(at);
    return bytes;
  }

  Result<std::string> TakeAll(ObjectStream& stream, uint64_t max = 10'000) {
    std::string all;
    while (true) {
      auto piece = Take(stream, max);
      if (!piece || piece->empty()) return piece ? Result<std::string>(all) : piece;
      all += *piece;
    }
  }

  uint64_t BlocksAsked() { return origin().StatsOf("/a").requests - 1; }  // but for the probe
};

TEST_F(ObjectStreamTest, GivesTheRangeColdAndWarm) {
  const std::string bytes = Pattern(20 * kBlock + 77, 1);
  origin().AddFile("/a", bytes);
  const auto object = Open("/a").value();
  for (int round = 0; round < 2; ++round) {
    auto stream = Stream(object, 1000, UINT64_MAX);
    EXPECT_EQ(TakeAll(*stream).value(), bytes.substr(1000));
    EXPECT_EQ(stream->fetched(), round == 0);
    ASSERT_TRUE(WaitStored(object));
  }
  auto part = Stream(object, kBlock - 1, 2);
  EXPECT_EQ(TakeAll(*part).value(), bytes.substr(kBlock - 1, 2));
  auto nothing = Stream(object, bytes.size(), 5);
  EXPECT_EQ(TakeAll(*nothing).value(), "");
  EXPECT_EQ(BlocksAsked(), 21u);
}

TEST_F(ObjectStreamTest, AGlanceCostsTheFirstBlocksAlone) {
  origin().AddFile("/a", Pattern(40 * kBlock, 2));
  const auto object = Open("/a").value();
  for (const uint64_t offset : {uint64_t{0}, 10 * kBlock - 1, 20 * kBlock + 5}) {
    origin().ResetStats();
    auto stream = Stream(object, offset, UINT64_MAX);
    ASSERT_FALSE(Take(*stream, 1).value().empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_FALSE(Take(*stream, 1).value().empty());
    stream.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(origin().StatsOf("/a").requests, 2u) << offset;
  }
}

TEST_F(ObjectStreamTest, TheWindowGrowsWithWhatIsTaken) {
  options_.max_readahead_bytes = 8 * kBlock;
  Restart();
  origin().AddFile("/a", Pattern(60 * kBlock, 3));
  const auto object = Open("/a").value();
  auto stream = Stream(object, 0, UINT64_MAX);
  uint64_t most_ahead = 0;
  for (uint64_t taken = 0; taken < 30; ++taken) {
    for (uint64_t got = 0; got < kBlock;) got += Take(*stream, kBlock - got).value().size();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const uint64_t ahead = BlocksAsked() - (taken + 1);
    EXPECT_LE(taken + ahead, taken < 1 ? 1u : taken + 10) << "two blocks, until two are taken";
    most_ahead = std::max(most_ahead, ahead);
  }
  EXPECT_GE(most_ahead, 6u);
}

TEST_F(ObjectStreamTest, RestGivesTheMemoryBackAndLosesNothing) {
  const std::string bytes = Pattern(20 * kBlock, 4);
  origin().AddFile("/a", bytes);
  const auto object = Open("/a").value();
  auto stream = Stream(object, 0, UINT64_MAX, 4);
  std::string all = Take(*stream, 100).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_GT(engine_->Stats().inflight_bytes, 0u);
  ASSERT_EQ(all.size(), 100u);
  stream->Rest(50);
  all.resize(50);
  for (int i = 0; i < 200 && engine_->Stats().inflight_bytes > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(engine_->Stats().inflight_bytes, 0u);
  all += TakeAll(*stream).value();
  EXPECT_EQ(all, bytes);
}

}  // namespace
}  // namespace dartfs::core
