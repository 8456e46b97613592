#include "core/engine/origin_source.h"

#include <utility>

#include "core/engine/admission.h"

namespace dartfs::core {

namespace {

class OriginSink final : public HttpSink {
 public:
  OriginSink(ExpectedBlock expected, std::string version, std::string etag,
             std::shared_ptr<BlockSink> sink, EngineCounters& counters)
      : version_(std::move(version)),
        etag_(std::move(etag)),
        expected_(std::move(expected)),
        left_(expected_.last - expected_.first + 1),
        sink_(std::move(sink)),
        counters_(counters) {
    expected_.version = version_;
    expected_.etag = etag_;
  }

  Status OnHead(const HttpHead& head) override {
    TRY(CheckBlockHead(head, expected_));
    return sink_->OnStart(/*trusted=*/true);
  }

  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override {
    if (bytes.size() > left_) {
      return MakeError(Code::kBadResponse, expected_.what + ": the answer is longer than it said");
    }
    TRY_ASSIGN(const BodyVerdict verdict, sink_->OnBytes(bytes));
    if (verdict == BodyVerdict::kTaken) {
      left_ -= bytes.size();
      counters_.origin_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
    }
    return verdict;
  }

  void OnPiecesEnd() override { sink_->OnPiecesEnd(); }
  void OnDone(Status status) override { sink_->OnEnd(std::move(status)); }

 private:
  const std::string version_;
  const std::string etag_;
  ExpectedBlock expected_;
  uint64_t left_;  // bytes due
  const std::shared_ptr<BlockSink> sink_;
  EngineCounters& counters_;
};

}  // namespace

std::shared_ptr<BlockFetch> OriginSource::Fetch(BlockRequest request,
                                                std::shared_ptr<BlockSink> sink) {
  const uint64_t block_start = options_.grid.BlockOffset(request.block);
  ExpectedBlock expected;
  expected.first = block_start + request.from;
  expected.last = block_start + request.length - 1;
  expected.total = request.object->size();
  expected.what = "GET " + request.object->facts().identity.redacted_url + " bytes " +
                  std::to_string(expected.first) + "-" + std::to_string(expected.last);
  HttpRequest http;
  http.url = request.requester->url.ToString();
  http.authorization = request.requester->authorization;
  http.untrusted_url = request.requester->untrusted_url;
  http.headers = VersionGuard(request.object->version());
  http.headers.push_back(
      {"Range", "bytes=" + std::to_string(expected.first) + "-" + std::to_string(expected.last)});
  http.priority = request.priority;
  http.first_byte_timeout = options_.first_byte_timeout;
  http.stall_timeout = options_.stall_timeout;
  auto origin_sink =
      std::make_shared<OriginSink>(std::move(expected), request.object->version(),
                                   request.object->facts().meta.etag, std::move(sink), counters_);
  return std::make_shared<HttpBlockFetch>(http_.Start(std::move(http), std::move(origin_sink)));
}

}  // namespace dartfs::core
