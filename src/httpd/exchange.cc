#include "httpd/exchange.h"

#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "httpd/status_map.h"

namespace dartfs::httpd {
namespace {

class TextBody final : public Body {
 public:
  explicit TextBody(std::string text) : text_(std::make_shared<std::string>(std::move(text))) {}
  BodyStep Next(uint64_t max, BodyWaker) override {
    const auto left = std::as_bytes(std::span(*text_)).subspan(at_);
    if (left.empty()) return BodyEnd{};
    const auto piece = left.first(std::min<uint64_t>(max, left.size()));
    at_ += piece.size();
    return MemoryPiece{piece, text_};
  }

 private:
  const std::shared_ptr<const std::string> text_;
  size_t at_ = 0;
};

constexpr const char* kTextType = "text/plain; charset=utf-8";

}  // namespace

std::unique_ptr<Body> MakeTextBody(std::string text) {
  return std::make_unique<TextBody>(std::move(text));
}

Exchange::Exchange(Request&& request, const Listener& listener, const std::string& client,
                   std::shared_ptr<ExchangeLink> link)
    : request_(std::move(request)), listener_(listener), client_(client), link_(std::move(link)) {}

Exchange::~Exchange() {
  if (answered_) return;
  RespondError(core::MakeError(core::Code::kInternal, "the request was not answered"));
}

void Exchange::Respond(ResponseHead head, std::unique_ptr<Body> body) {
  if (std::exchange(answered_, true)) return;
  link_->Answer(std::move(head), std::move(body), std::move(note_));
}

void Exchange::HandOver(ResponseHead head, std::unique_ptr<Takeover> takeover) {
  if (std::exchange(answered_, true)) return;
  head.framing = Framing::kNone;
  link_->HandOver(std::move(head), std::move(takeover), std::move(note_));
}

void Exchange::RespondText(int status, std::string text) {
  ResponseHead head;
  head.status = status;
  RespondText(std::move(head), std::move(text));
}

void Exchange::RespondText(ResponseHead head, std::string text) {
  head.Add("Content-Type", kTextType);
  head.Add("X-Content-Type-Options", "nosniff");
  head.framing = Framing::kLength;
  head.content_length = text.size();
  Respond(std::move(head), MakeTextBody(std::move(text)));
}

void Exchange::RespondError(const core::Error& error) {
  TextAnswer answer = ErrorAnswer(error);
  Respond(std::move(answer.head), MakeTextBody(std::move(answer.text)));
}

TextAnswer ErrorAnswer(const core::Error& error) {
  constexpr int64_t kMsPerSecond = 1000;
  TextAnswer answer;
  answer.head.status = StatusOf(error.code);
  // An origin that is overloaded is not one whose client asks too much.
  if (error.code == core::Code::kTooManyRequests && error.http_status == 503) {
    answer.head.status = 503;
  }
  answer.text = error.context + "\n";
  answer.head.Add("Content-Type", kTextType);
  answer.head.Add("X-Content-Type-Options", "nosniff");
  answer.head.Add("Cache-Control", "no-store");
  if (answer.head.status == 401 && !error.challenge.empty()) {
    answer.head.AddForeign("WWW-Authenticate", error.challenge);
  }
  if (IsPassing(answer.head.status)) {
    const int64_t wait_ms = std::max<int64_t>(kMsPerSecond, error.retry_after_ms);
    answer.head.Add("Retry-After", std::to_string((wait_ms + kMsPerSecond - 1) / kMsPerSecond));
  }
  answer.head.content_length = answer.text.size();
  return answer;
}

}  // namespace dartfs::httpd
