#include "httpd/token_exchange.h"

#include <memory>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/engine/admission.h"

namespace dartfs::httpd {
namespace {

using core::BodyVerdict;
using core::Code;
using core::Error;
using core::MakeError;
using core::Result;
using core::Status;
using Done = core::UniqueFunction<void(Result<TokenGrant>)>;

Error Refusal(const core::HttpHead& head, const std::string& what) {
  Error error = core::StatusError(head, what);
  if (head.status == 401 || head.status == 403) {
    error.code = Code::kUnauthorized;
  } else if (error.code != Code::kTooManyRequests && error.code != Code::kUnavailable) {
    // Of the service, not of what is asked of the registry: no 404 for it.
    error.code = Code::kBadResponse;
  }
  return error;
}

class AnswerSink final : public core::HttpSink {
 public:
  AnswerSink(core::Scheduler& scheduler, std::string what, Done done)
      : scheduler_(scheduler), what_(std::move(what)), done_(std::move(done)) {}

  Status OnHead(const core::HttpHead& head) override {
    if (head.status != 200) return Refusal(head, what_);
    answered_ = true;
    return {};
  }

  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override {
    if (bytes.size() > kMaxTokenAnswerBytes - body_.size()) {
      return MakeError(Code::kBadResponse, what_ + ": the answer is too long for a token");
    }
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return BodyVerdict::kTaken;
  }

  void OnDone(Status status) override {
    // Away from the transfer thread: what waits will start requests.
    scheduler_.Post([done = std::move(done_), result = Read(std::move(status))]() mutable {
      done(std::move(result));
    });
  }

 private:
  Result<TokenGrant> Read(Status status) const {
    if (!status) return std::move(status).error();
    if (!answered_) return MakeError(Code::kBadResponse, what_ + ": no answer");
    auto grant = ReadTokenAnswer(body_);
    if (!grant) return std::move(grant).error().WithContext(what_);
    return grant;
  }

  core::Scheduler& scheduler_;
  const std::string what_;
  Done done_;
  std::string body_;
  bool answered_ = false;
};

}  // namespace

void StartTokenExchange(core::HttpClient& http, core::Scheduler& scheduler,
                        core::HttpRequest request, Done done) {
  const std::string what = "token service " + core::RedactUrl(request.url);
  http.Start(std::move(request), std::make_shared<AnswerSink>(scheduler, what, std::move(done)));
}

}  // namespace dartfs::httpd
