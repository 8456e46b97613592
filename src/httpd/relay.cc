#include "httpd/relay.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

using core::BodyVerdict;
using core::Code;
using core::HttpHead;
using core::MakeError;
using core::Result;
using core::Status;

// Of one answer, in memory, before the origin is told to wait.
constexpr size_t kQueueBytes = 512 * 1024;

constexpr std::array<std::string_view, 22> kEntityFields = {"accept-ranges",
                                                            "age",
                                                            "cache-control",
                                                            "content-disposition",
                                                            "content-encoding",
                                                            "content-language",
                                                            "content-range",
                                                            "content-type",
                                                            "docker-content-digest",
                                                            "docker-distribution-api-version",
                                                            "etag",
                                                            "expires",
                                                            "last-modified",
                                                            "link",
                                                            "location",
                                                            "retry-after",
                                                            "vary",
                                                            "www-authenticate",
                                                            "x-linked-etag",
                                                            "x-linked-size",
                                                            "x-repo-commit",
                                                            "content-location"};

bool IsEntityField(const std::string& name) {
  const std::string lower = core::ToLowerAscii(name);
  return std::find(kEntityFields.begin(), kEntityFields.end(), lower) != kEntityFields.end();
}

// What the sink and the body share. The body may go first (the client has hung up), or the sink.
class RelayState final : public core::HttpSink, public std::enable_shared_from_this<RelayState> {
 public:
  RelayState(ExchangePtr exchange, RelayOptions options, bool only_head)
      : exchange_(std::move(exchange)), options_(std::move(options)), only_head_(only_head) {}

  void SetCall(std::shared_ptr<core::HttpCall> call) {
    bool cancel = false;
    {
      core::MutexLock lock(mu_);
      call_ = call;
      cancel = abandoned_;
    }
    if (cancel) call->Cancel();
  }

  Status OnHead(const HttpHead& head) override;
  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override;
  void OnDone(Status status) override;

  BodyStep Next(uint64_t max, BodyWaker wake);
  void Abandon();

 private:
  struct Piece {
    std::shared_ptr<std::vector<std::byte>> bytes;
    size_t at = 0;
  };

  ExchangePtr exchange_;  // until the head; the transfer thread alone
  RelayOptions options_;
  const bool only_head_;

  core::Mutex mu_;  // leaf
  std::shared_ptr<core::HttpCall> call_ GUARDED_BY(mu_);
  std::deque<Piece> queue_ GUARDED_BY(mu_);
  size_t queued_ GUARDED_BY(mu_) = 0;
  bool paused_ GUARDED_BY(mu_) = false;
  bool abandoned_ GUARDED_BY(mu_) = false;
  std::optional<Status> done_ GUARDED_BY(mu_);
  BodyWaker wake_ GUARDED_BY(mu_);
};

class RelayBody final : public Body {
 public:
  explicit RelayBody(std::shared_ptr<RelayState> state) : state_(std::move(state)) {}
  ~RelayBody() override { state_->Abandon(); }
  BodyStep Next(uint64_t max, BodyWaker wake) override {
    return state_->Next(max, std::move(wake));
  }

 private:
  const std::shared_ptr<RelayState> state_;
};

std::string ChallengeOf(const HttpHead& head) {
  std::string all;
  for (const auto& header : head.headers) {
    if (!core::EqualsIgnoreCase(header.name, "WWW-Authenticate")) continue;
    all += (all.empty() ? "" : ", ") + header.value;
  }
  return all;
}

ResponseHead HeadFor(const HttpHead& from, bool only_head, bool cookies) {
  ResponseHead head;
  head.status = from.status;
  for (const auto& header : from.headers) {
    const bool cookie = cookies && core::EqualsIgnoreCase(header.name, "Set-Cookie");
    if (cookie || IsEntityField(header.name)) head.AddForeign(header.name, header.value);
  }
  const bool bodiless = from.status == 204 || from.status == 304;
  if (!bodiless && !head.Find("Content-Type")) {
    head.Add("Content-Type", "application/octet-stream");
  }
  const auto length = from.Find("Content-Length");
  const auto bytes = length ? core::ParseUint(*length) : std::nullopt;
  if (bodiless) {
    head.framing = Framing::kNone;
  } else if (bytes) {
    head.framing = Framing::kLength;
    head.content_length = *bytes;
  } else {
    head.framing = only_head ? Framing::kNone : Framing::kChunked;
  }
  return head;
}

Status RelayState::OnHead(const HttpHead& head) {
  if (head.status == 401 && options_.unauthorized) {
    const std::string challenge = ChallengeOf(head);
    if (options_.unauthorized(challenge, exchange_)) {
      return MakeError(Code::kCancelled, "asked again with a login");
    }
  }
  ResponseHead answer = HeadFor(head, only_head_, options_.cookies);
  if (options_.finish) options_.finish(answer);
  ExchangePtr exchange = std::move(exchange_);
  if (only_head_) {
    exchange->Respond(std::move(answer));
    return MakeError(Code::kCancelled, "the head says enough");
  }
  exchange->Respond(std::move(answer), std::make_unique<RelayBody>(shared_from_this()));
  return {};
}

Result<BodyVerdict> RelayState::OnBody(std::span<const std::byte> bytes) {
  BodyWaker wake;
  {
    core::MutexLock lock(mu_);
    if (abandoned_) return MakeError(Code::kCancelled, "the client has gone");
    if (queued_ >= kQueueBytes) {
      paused_ = true;
      return BodyVerdict::kPause;
    }
    queue_.push_back({std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end()), 0});
    queued_ += bytes.size();
    wake = std::move(wake_);
  }
  if (options_.on_bytes) options_.on_bytes(bytes.size());
  if (wake) wake();
  return BodyVerdict::kTaken;
}

void RelayState::OnDone(Status status) {
  if (exchange_ != nullptr) {
    ExchangePtr exchange = std::move(exchange_);
    const core::Error error =
        status ? MakeError(Code::kBadResponse, "the origin sent no answer") : status.error();
    if (options_.failed) return options_.failed(error, std::move(exchange));
    return exchange->RespondError(error);
  }
  BodyWaker wake;
  {
    core::MutexLock lock(mu_);
    done_ = std::move(status);
    wake = std::move(wake_);
    call_.reset();
  }
  if (wake) wake();
}

BodyStep RelayState::Next(uint64_t max, BodyWaker wake) {
  std::shared_ptr<core::HttpCall> resume;
  BodyStep step = NotYet{};
  {
    core::MutexLock lock(mu_);
    if (!queue_.empty()) {
      Piece& piece = queue_.front();
      const auto left = std::span<const std::byte>(*piece.bytes).subspan(piece.at);
      const auto part = left.first(std::min<uint64_t>(max, left.size()));
      step = MemoryPiece{part, piece.bytes, BytesFrom::kPass};
      piece.at += part.size();
      queued_ -= part.size();
      if (part.size() == left.size()) queue_.pop_front();
      if (paused_ && queued_ < kQueueBytes / 2) {
        paused_ = false;
        resume = call_;
      }
    } else if (done_) {
      step = *done_ ? BodyStep(BodyEnd{}) : BodyStep(done_->error());
    } else {
      wake_ = std::move(wake);
    }
  }
  if (resume != nullptr) resume->Resume();
  return step;
}

// Nobody takes the body any more.
void RelayState::Abandon() {
  std::shared_ptr<core::HttpCall> call;
  {
    core::MutexLock lock(mu_);
    abandoned_ = true;
    call = std::move(call_);
    queue_.clear();
  }
  if (call != nullptr) call->Cancel();
}

}  // namespace

void RelayCall(core::HttpClient& http, ExchangePtr exchange, core::HttpRequest request,
               RelayOptions options) {
  const bool only_head = exchange->is_head();
  auto state = std::make_shared<RelayState>(std::move(exchange), std::move(options), only_head);
  state->SetCall(http.Start(std::move(request), state));
}

void AddRelayedFields(const Request& from, core::HttpRequest& to) {
  constexpr std::array<const char*, 8> kFields = {"Accept",
                                                  "Accept-Language",
                                                  "Range",
                                                  "If-Range",
                                                  "If-None-Match",
                                                  "If-Modified-Since",
                                                  "If-Unmodified-Since",
                                                  "If-Match"};
  for (const char* name : kFields) {
    if (auto value = from.Find(name)) to.headers.push_back({name, std::move(*value)});
  }
  if (auto agent = from.Find("User-Agent")) to.user_agent = std::move(*agent);
}

}  // namespace dartfs::httpd
