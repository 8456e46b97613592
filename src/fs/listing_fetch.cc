#include "fs/listing_fetch.h"

#include <unordered_set>
#include <utility>

#include "core/base/hash.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/engine/admission.h"

namespace dartfs::fs {
namespace {

using core::BodyVerdict;
using core::Code;
using core::Error;
using core::HttpHead;
using core::MakeError;
using core::ParseUrl;
using core::PercentEncode;
using core::Result;
using core::Status;
using core::Url;
using core::UrlSet;

constexpr size_t kMaxErrorBody = 4096;  // of a refusal, looked at for S3's form
constexpr size_t kMaxPages = 1000;
constexpr size_t kMaxShownType = 64;
constexpr core::Duration kFirstByteTimeout = std::chrono::seconds(10);

// One answer, as far as it is wanted.
struct Answer {
  int status = 0;
  std::string content_type;
  DirListing::Validators validators;
  std::string effective_url;
  std::string body;
  bool cut = false;     // at kMaxListingBytes
  bool usable = false;  // 200, of a type and coding that a listing may have
  Error refusal;        // why it is not
};

using Answered = core::UniqueFunction<void(Result<Answer>)>;

class AnswerSink final : public core::HttpSink {
 public:
  AnswerSink(std::string what, Answered done) : what_(std::move(what)), done_(std::move(done)) {}

  Status OnHead(const HttpHead& head) override {
    seen_ = true;
    answer_.status = head.status;
    answer_.content_type = head.Find("Content-Type").value_or("");
    answer_.validators.etag = head.Find("ETag").value_or("");
    answer_.validators.last_modified = head.Find("Last-Modified").value_or("");
    answer_.effective_url = head.effective_url;
    const std::string_view coding = head.Find("Content-Encoding").value_or("identity");
    answer_.usable = head.status == 200 && MayBeListing(answer_.content_type) &&
                     (coding.empty() || core::EqualsIgnoreCase(coding, "identity"));
    if (!answer_.usable) answer_.refusal = RefusalOf(head);
    limit_ = answer_.usable ? kMaxListingBytes : kMaxErrorBody;
    // A file of any size may be there: its bytes are not wanted.
    if (head.status == 200 && !answer_.usable) return Enough();
    return {};
  }

  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override {
    const size_t take = std::min(bytes.size(), limit_ - answer_.body.size());
    answer_.body.append(reinterpret_cast<const char*>(bytes.data()), take);
    if (take < bytes.size()) {
      answer_.cut = true;
      return Enough().error();
    }
    return BodyVerdict::kTaken;
  }

  void OnDone(Status status) override {
    Answered done = std::move(done_);
    if (!status && !enough_) {
      done(std::move(status).error());
    } else if (!seen_) {
      done(MakeError(Code::kBadResponse, what_ + ": no answer"));
    } else {
      done(std::move(answer_));
    }
  }

 private:
  Error RefusalOf(const HttpHead& head) const {
    if (head.status >= 400) {
      Error error = core::StatusError(head, what_);
      if (head.status == 407) error.code = Code::kUnauthorized;
      return error;
    }
    Error error = MakeError(Code::kBadResponse,
                            what_ + ": the origin answered " + std::to_string(head.status) + " (" +
                                core::EscapeForeign(answer_.content_type, kMaxShownType) +
                                "), which is no listing");
    error.http_status = head.status;
    return error;
  }

  Status Enough() {
    enough_ = true;
    return MakeError(Code::kCancelled, what_ + ": the rest is not wanted");
  }

  const std::string what_;
  Answered done_;
  Answer answer_;
  size_t limit_ = 0;
  bool seen_ = false;
  bool enough_ = false;
};

std::string DirectoryOf(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1));
}

// Where the bucket may be: "/" and "/<first segment>/".
std::vector<std::string> BucketCandidates(const std::string& path) {
  std::vector<std::string> candidates{"/"};
  const size_t slash = path.find('/', 1);
  if (slash != std::string::npos) candidates.push_back(path.substr(0, slash + 1));
  return candidates;
}

class Fetch final : public ListingFetch, public std::enable_shared_from_this<Fetch> {
 public:
  Fetch(core::HttpClient& http, core::Scheduler& worker, ListingRequest request,
        ListingFetched done)
      : http_(http), worker_(worker), request_(std::move(request)), done_(std::move(done)) {}

  void Begin() {
    if (request_.bucket && request_.directory.path.starts_with(*request_.bucket)) {
      candidates_ = {*request_.bucket};
      return NextCandidate();
    }
    std::vector<core::HttpHeader> headers;
    const auto& validators = request_.validators;
    conditional_ = !validators.etag.empty() || !validators.last_modified.empty();
    if (!validators.etag.empty()) {
      headers.push_back({"If-None-Match", validators.etag});
    } else if (conditional_) {
      headers.push_back({"If-Modified-Since", validators.last_modified});
    }
    Get(request_.directory, std::move(headers), &Fetch::OnPlain);
  }

  void Cancel() override {
    std::shared_ptr<core::HttpCall> call;
    {
      core::MutexLock lock(mu_);
      cancelled_ = true;
      call = call_;
    }
    if (call != nullptr) call->Cancel();
  }

 private:
  using Step = void (Fetch::*)(const Answer& answer);

  // One request; its answer goes to `step` on the worker.
  void Get(const Url& url, std::vector<core::HttpHeader> headers, Step step) {
    core::HttpRequest request;
    request.url = url.ToString();
    request.headers = std::move(headers);
    request.headers.push_back(
        {"Accept", "text/html, application/json, application/xml;q=0.9, */*;q=0.1"});
    request.authorization = request_.authorization;
    request.deadline = request_.deadline;
    request.first_byte_timeout = kFirstByteTimeout;
    auto sink = std::make_shared<AnswerSink>(
        "listing " + core::RedactUrl(request.url),
        [self = shared_from_this(), step](Result<Answer> answer) {
          auto shared = std::make_shared<Result<Answer>>(std::move(answer));
          self->worker_.Post([self, step, shared] { self->OnAnswer(step, std::move(*shared)); });
        });
    auto call = http_.Start(std::move(request), std::move(sink));
    bool cancelled = false;
    {
      core::MutexLock lock(mu_);
      call_ = call;
      cancelled = cancelled_;
    }
    if (cancelled) call->Cancel();
  }

  void OnAnswer(Step step, Result<Answer> answer) {
    if (!answer) return Finish(std::move(answer).error());
    const int status = answer->status;
    if (status == 429 || status >= 500) return Finish(std::move(answer->refusal));
    (this->*step)(*answer);
  }

  void OnPlain(const Answer& answer) {
    if (answer.status == 304 && conditional_) return FinishAs(FetchedListing::Kind::kNotModified);
    if (!answer.usable) {
      Refuse(answer);
      if (request_.find_bucket && answer.status >= 400 && IsS3Error(answer.body)) {
        result_.looked_for_bucket = true;
        candidates_ = BucketCandidates(request_.directory.path);
        return NextCandidate();
      }
      return FinishAs(refused_as_);
    }
    const auto page = ParseUrl(answer.effective_url);
    // A page that was redirected to is the directory's only if it is a directory's: not a login.
    if (!page ||
        !(page->path.ends_with('/') || DirectoryOf(page->path) == request_.directory.path)) {
      return NoListing(MakeError(Code::kBadResponse, "it is redirected to " +
                                                         core::RedactUrl(answer.effective_url) +
                                                         ", which is no directory"));
    }
    auto listing = ParseListing(answer.content_type, answer.body, *page);
    if (!listing) return NoListing(std::move(listing).error());
    if (listing->format == ListingFormat::kS3) {
      // In full and by directory: what came may be one page of all keys.
      candidates_ = {request_.directory.path};
      return NextCandidate();
    }
    result_.validators = answer.validators;
    complete_ = listing->index && !listing->cut && !answer.cut;
    children_ = std::move(listing->children);
    FinishListing();
  }

  static FetchedListing::Kind KindOf(int status) {
    if (status == 401 || status == 407) return FetchedListing::Kind::kUnauthorized;
    if (status == 404 || status == 410) return FetchedListing::Kind::kAbsent;
    return status >= 400 ? FetchedListing::Kind::kForbidden : FetchedListing::Kind::kNone;
  }

  void Refuse(const Answer& answer) {
    refused_as_ = KindOf(answer.status);
    result_.problem = answer.refusal;
  }

  void NextCandidate() {
    if (candidates_.empty()) return FinishAs(refused_as_);
    bucket_ = std::move(candidates_.front());
    candidates_.erase(candidates_.begin());
    const auto prefix = core::PercentDecode(request_.directory.path.substr(bucket_.size()));
    if (!prefix) return NoListing(MakeError(Code::kInvalidArgument, "no prefix of keys"));
    prefix_ = *prefix;
    GetPage("");
  }

  void GetPage(const std::string& token) {
    Url url = request_.directory;
    url.path = bucket_;
    url.query = "list-type=2&delimiter=%2F&encoding-type=url&prefix=" +
                PercentEncode(prefix_, UrlSet::kUnreserved);
    if (!token.empty()) {
      *url.query += "&continuation-token=" + PercentEncode(token, UrlSet::kUnreserved);
    }
    ++pages_;
    Get(url, {}, &Fetch::OnPage);
  }

  void OnPage(const Answer& answer) {
    const bool first = pages_ == 1 || children_.empty();
    auto listing = answer.usable
                       ? ParseListing(answer.content_type, answer.body, request_.directory)
                       : Result<ParsedListing>(MakeError(Code::kBadResponse, "refused"));
    if (!listing || listing->format != ListingFormat::kS3 || listing->s3_prefix != prefix_) {
      if (!first) return NoListing(MakeError(Code::kBadResponse, "a page of it was refused"));
      if (answer.status >= 400) Refuse(answer);
      pages_ = 0;
      tokens_.clear();
      return NextCandidate();
    }
    for (ListedChild& child : listing->children) children_.push_back(std::move(child));
    complete_ = !listing->cut;
    if (!listing->s3_next.empty()) {
      complete_ = false;
      if (!tokens_.insert(core::Xxh3(listing->s3_next)).second) {
        return Finish(MakeError(Code::kBadResponse,
                                What() + ": its pages go in a circle (NextContinuationToken)"));
      }
      if (pages_ < kMaxPages && children_.size() < kMaxListingEntries) {
        return GetPage(listing->s3_next);
      }
    }
    result_.bucket = bucket_;
    // Directories of an object store are made by what is in them.
    if (children_.empty() && !prefix_.empty()) {
      result_.problem = MakeError(Code::kNotFound, What() + ": no key begins so");
      return FinishAs(FetchedListing::Kind::kAbsent);
    }
    FinishListing();
  }

  std::string What() const { return "listing " + core::RedactUrl(request_.directory.ToString()); }

  void NoListing(Error error) {
    result_.problem = std::move(error).WithContext(What());
    FinishAs(FetchedListing::Kind::kNone);
  }

  void FinishListing() {
    if (children_.size() > kMaxListingEntries) {
      children_.resize(kMaxListingEntries);
      complete_ = false;
    }
    result_.children = NameChildren(std::move(children_));
    result_.complete = complete_;
    FinishAs(FetchedListing::Kind::kListing);
  }

  void FinishAs(FetchedListing::Kind kind) {
    result_.kind = kind;
    const bool listed =
        kind == FetchedListing::Kind::kListing || kind == FetchedListing::Kind::kNotModified;
    if (!listed && result_.problem.context.empty()) {
      result_.problem = MakeError(Code::kBadResponse, What() + ": the answer is no listing");
    }
    Finish(std::move(result_));
  }

  void Finish(Result<FetchedListing> result) {
    ListingFetched done = std::move(done_);
    done(std::move(result));
  }

  core::HttpClient& http_;
  core::Scheduler& worker_;
  const ListingRequest request_;

  core::Mutex mu_;  // leaf
  std::shared_ptr<core::HttpCall> call_ GUARDED_BY(mu_);
  bool cancelled_ GUARDED_BY(mu_) = false;

  // Of one step at a time.
  ListingFetched done_;
  FetchedListing result_;
  FetchedListing::Kind refused_as_ = FetchedListing::Kind::kNone;
  bool conditional_ = false;
  std::vector<std::string> candidates_;
  std::string bucket_, prefix_;
  size_t pages_ = 0;
  std::unordered_set<uint64_t> tokens_;  // hashes of those that were followed
  std::vector<ListedChild> children_;
  bool complete_ = false;
};

}  // namespace

std::shared_ptr<ListingFetch> ListingFetch::Start(core::HttpClient& http, core::Scheduler& worker,
                                                  ListingRequest request, ListingFetched done) {
  auto fetch = std::make_shared<Fetch>(http, worker, std::move(request), std::move(done));
  fetch->Begin();
  return fetch;
}

}  // namespace dartfs::fs
