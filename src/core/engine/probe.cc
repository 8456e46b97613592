#include "core/engine/probe.h"

#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/io/http_redirect.h"

namespace dartfs::core {

namespace {

// Bodies of answers whose head has said all (206 of a byte, 304, 416) are read and thrown away up
// to this, to keep the connection.
constexpr uint64_t kMaxIgnoredBody = 64 * 1024;

std::vector<HttpHeader> Conditions(const std::string& known_version) {
  const auto version = ParseVersion(known_version);
  if (!version) return {};
  if (!version->etag().empty()) return {{"If-None-Match", std::string(version->etag())}};
  if (!version->last_modified().empty()) {
    return {{"If-Modified-Since", std::string(version->last_modified())}};
  }
  return {};
}

class ProbeSink final : public HttpSink {
 public:
  ProbeSink(FlightEnv& env, ProbeRequest request, ProbeDone done)
      : env_(env), request_(std::move(request)), done_(std::move(done)) {}

  Status OnHead(const HttpHead& head) override {
    if (IsDirectory(head)) {
      answer_ = MakeError(Code::kIsDirectory, request_.what + ": the URL is that of a directory");
      return answer_->error();
    }
    if (request_.pass_redirects && IsRedirect(head.status)) {
      answer_ = Redirected(head);
      return answer_->error();
    }
    answer_ = ReadProbeHead(head, request_.fixed, request_.what);
    if (!*answer_) return answer_->error();
    if ((*answer_)->not_modified) return OnNotModified(head);
    ProbeFacts& facts = **answer_;
    facts.via_redirect = head.effective_url != request_.url.ToString();
    if (facts.range_blind && request_.range_blind && !request_.range_blind()) {
      answer_ = MakeError(Code::kRangeBlind, request_.what + ": the origin ignores ranges");
      return answer_->error();
    }
    counting_ = facts.range_blind && !facts.size;
    if (facts.range_blind && !counting_) return MakeError(Code::kCancelled, "the head says enough");
    return {};
  }

  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override {
    body_ += bytes.size();
    env_.counters.origin_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
    if (counting_ && body_ > env_.options.spool_limit_bytes) {
      answer_ =
          MakeError(Code::kTooLarge,
                    request_.what + ": the origin ignores ranges and the object is larger than " +
                        FormatSize(env_.options.spool_limit_bytes) +
                        " (--spool-limit), so it can't be spooled");
      return answer_->error();
    }
    if (!counting_ && body_ > kMaxIgnoredBody) {
      return MakeError(Code::kCancelled, "the head says enough");
    }
    return BodyVerdict::kTaken;
  }

  void OnDone(Status status) override {
    ProbeDone done = std::move(done_);
    if (!answer_) {
      done(status ? Result<ProbeFacts>(MakeError(Code::kBadResponse, request_.what + ": no answer"))
                  : Result<ProbeFacts>(std::move(status).error()));
      return;
    }
    if (counting_ && *answer_) {
      if (!status) {
        done(std::move(status).error());
        return;
      }
      (*answer_)->size = body_;
      if (body_ == 0) (*answer_)->range_blind = false;
    }
    done(std::move(*answer_));
  }

 private:
  Error Redirected(const HttpHead& head) const {
    Error error =
        MakeError(Code::kRedirected, request_.what + ": the origin answered " +
                                         std::to_string(head.status) + ", which is passed on");
    error.http_status = head.status;
    error.answer = std::make_shared<const HttpHead>(head);
    return error;
  }
  Status OnNotModified(const HttpHead& head) {
    if (Conditions(request_.known_version).empty()) {
      answer_ =
          MakeError(Code::kBadResponse, request_.what + ": 304 to a request without a condition");
      return answer_->error();
    }
    if (NamesAnother(head, request_.known_version, request_.known_etag)) {
      answer_ = MakeError(Code::kStale, request_.what + ": a 304 that names another version");
      return answer_->error();
    }
    (*answer_)->via_redirect = head.effective_url != request_.url.ToString();
    return {};
  }
  bool IsDirectory(const HttpHead& head) const {
    const auto effective = ParseUrl(head.effective_url);
    return effective && effective->Authority() == request_.url.Authority() &&
           effective->path == request_.url.path + "/";
  }

  FlightEnv& env_;
  ProbeRequest request_;
  ProbeDone done_;
  std::optional<Result<ProbeFacts>> answer_;
  uint64_t body_ = 0;
  bool counting_ = false;
};

}  // namespace

std::shared_ptr<HttpCall> StartProbe(FlightEnv& env, HttpClient& http, ProbeRequest request,
                                     ProbeDone done) {
  HttpRequest call;
  call.url = request.url.ToString();
  call.authorization = request.authorization;
  call.untrusted_url = request.untrusted_url;
  call.follow_redirects = !request.pass_redirects;
  call.headers = Conditions(request.known_version);
  call.headers.push_back({"Range", "bytes=0-0"});
  call.first_byte_timeout = env.options.first_byte_timeout;
  call.stall_timeout = env.options.stall_timeout;
  auto sink = std::make_shared<ProbeSink>(env, std::move(request), std::move(done));
  return http.Start(std::move(call), std::move(sink));
}

}  // namespace dartfs::core
