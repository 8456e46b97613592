#include "core/io/curl_transfer.h"
#include "core/base/log.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/io/curl_error.h"
#include "core/io/proxy_environment.h"

namespace dartfs::core {
namespace {

// A rest up to this is read away to keep the connection, which costs less than a new one.
constexpr uint64_t kDrainBytes = 64 * 1024;
constexpr Duration kDrainTime = std::chrono::seconds(2);
constexpr uint64_t kReportBytes = 4 << 20;

CurlTransfer& Self(void* owner) { return *static_cast<CurlTransfer*>(owner); }

}  // namespace

CurlTransfer::CurlTransfer(CurlShared& shared, CurlCallPtr call)
    : shared_(shared), call_(std::move(call)), arrived_at_(RealClock().Now()) {}

CurlTransfer::~CurlTransfer() { Detach(); }

CurlCallbacks CurlTransfer::Callbacks(CurlSockets& sockets) {
  CurlCallbacks callbacks;
  callbacks.header = [](char* data, size_t, size_t size, void* owner) -> size_t {
    return Self(owner).OnHeaderLine({data, size}) ? size : 0;
  };
  callbacks.body = [](char* data, size_t, size_t size, void* owner) -> size_t {
    return Self(owner).OnBody(std::as_bytes(std::span(data, size)));
  };
  callbacks.socket = [](void* owner, curlsocktype, curl_sockaddr* address) -> curl_socket_t {
    return Self(owner).OnSocket(*address);
  };
  callbacks.close = [](void* owner, curl_socket_t fd) -> int {
    return static_cast<CurlSockets*>(owner)->Close(fd);
  };
  callbacks.close_owner = &sockets;
  callbacks.request = [](void* owner, char* peer_ip, char* local_ip, int peer_port,
                         int local_port) -> int {
    return Self(owner).OnConnected({local_ip, local_port, peer_ip, peer_port})
               ? CURL_PREREQFUNC_OK
               : CURL_PREREQFUNC_ABORT;
  };
  return callbacks;
}

void CurlTransfer::Start(const OriginTable::Ready& ready) {
  origin_ = ready.origin;
  slot_ = ready.slot;
  hop_ = call_->target.hop;
  if (Status started = StartHop(); !started) End(std::move(started));
}

Status CurlTransfer::StartHop() {
  phase_ = Phase::kConnecting;
  phase_since_ = RealClock().Now();
  use_ = Use::kDeliver;
  parser_ = std::make_unique<HeadParser>();
  TRY(CheckUrl());
  if (easy_ == nullptr) {
    TRY_ASSIGN(easy_, shared_.easies.Take());
  }
  TRY(easy_->Prepare(hop_, proxy_, this));
  const CURLMcode rc = curl_multi_add_handle(shared_.multi, easy_->get());
  if (rc != CURLM_OK) {
    return MakeError(Code::kInternal, What() + ": libcurl: " + curl_multi_strerror(rc));
  }
  attached_ = true;
  return {};
}

Status CurlTransfer::CheckUrl() {
  proxy_.clear();
  if (shared_.options.use_environment_proxies) proxy_ = ProxyEnvironment::Read().For(hop_.url);
  policy_ = shared_.policy.Get();
  Status verdict = proxy_.empty()
                       ? policy_->CheckUrl(hop_.url)
                       : policy_->CheckUrlByProxy(hop_.url, call_->request.untrusted_url);
  if (!verdict) return std::move(verdict).error().WithContext(What());
  return {};
}

Status CurlTransfer::CheckAddress(const IpAddress& address) const {
  Status verdict = proxy_.empty() ? policy_->CheckAddress(hop_.url, address)
                                  : policy_->CheckProxyAddress(address);
  if (!verdict) return std::move(verdict).error().WithContext(What());
  return {};
}

curl_socket_t CurlTransfer::OnSocket(const curl_sockaddr& address) {
  if (const auto ip = FromSockaddr(address.addr)) {
    if (Status verdict = CheckAddress(*ip); !verdict) {
      // libcurl goes on to the host's next address; this counts if none of them is left.
      broken_off_ = std::move(verdict).error();
      return CURL_SOCKET_BAD;
    }
  }
  return shared_.sockets.Open(address.family, address.socktype, address.protocol);
}

bool CurlTransfer::OnConnected(const Ends& ends) {
  redo_ = shared_.sockets.Unclean(ends.local_ip, ends.local_port, ends.peer_ip, ends.peer_port);
  if (redo_) return false;
  // A connection that was kept may be of an older policy.
  const auto peer = ParseIpLiteral(ends.peer_ip);
  Status verdict = peer ? CheckAddress(*peer) : Status();
  if (!verdict) {
    broken_off_ = std::move(verdict).error();
    return false;
  }
  broken_off_.reset();  // an allowed address was found after all
  phase_ = Phase::kHead;
  phase_since_ = RealClock().Now();
  shared_.changed.push_back(this);
  return true;
}

bool CurlTransfer::OnHeaderLine(std::string_view line) {
  if (call_->cancelled()) return false;
  if (phase_ == Phase::kBody) return true;  // a trailer
  const Result<HeadParser::Step> step = parser_->Line(line);
  if (!step) {
    broken_off_ = Error(step.error()).WithContext(What());
    return false;
  }
  return *step == HeadParser::Step::kMore || OnHead();
}

bool CurlTransfer::OnHead() {
  phase_ = Phase::kBody;
  phase_since_ = RealClock().Now();
  shared_.changed.push_back(this);
  HttpHead& head = parser_->head();
  head.effective_url = hop_.url.ToString();
  if (call_->request.follow_redirects && IsRedirect(head.status)) return Discard(Use::kRedirect);
  head.redirect_headers = redirect_headers_;
  shared_.mailbox.Answered(*origin_, slot_, head);
  Status verdict = call_->sink().OnHead(head);
  if (verdict) return true;
  early_end_ = std::move(verdict).error();
  return Discard(Use::kDrain);
}

// False: too much is due, so the connection is given up.
bool CurlTransfer::Discard(Use use) {
  use_ = use;
  const HttpFraming& framing = parser_->framing();
  const auto due = hop_.head ? uint64_t{0} : framing.BodyBytes(parser_->head().status);
  drain_left_ = kDrainBytes;
  return due ? *due <= kDrainBytes : framing.chunked;
}

size_t CurlTransfer::OnBody(std::span<const std::byte> bytes) {
  constexpr size_t kBreakOff = 0;
  if (call_->cancelled()) return kBreakOff;
  if (use_ != Use::kDeliver) {
    if (bytes.size() > drain_left_) return kBreakOff;
    drain_left_ -= bytes.size();
    return bytes.size();
  }
  phase_since_ = RealClock().Now();
  const Result<BodyVerdict> verdict = call_->sink().OnBody(bytes);
  if (!verdict) {
    broken_off_ = verdict.error();
    return kBreakOff;
  }
  if (*verdict == BodyVerdict::kPause) {
    paused_ = true;
    shared_.changed.push_back(this);
    return CURL_WRITEFUNC_PAUSE;
  }
  if (!std::exchange(fed_, true)) shared_.fed.push_back(this);
  body_bytes_ += bytes.size();
  unreported_bytes_ += bytes.size();
  if (unreported_bytes_ >= kReportBytes) FlushBytes();
  return bytes.size();
}

void CurlTransfer::Resume() {
  if (!paused_ || phase_ != Phase::kBody) return;
  paused_ = false;
  phase_since_ = RealClock().Now();
  // Calls OnBody from within; a body that breaks off there does not end in a message.
  const CURLcode rc = curl_easy_pause(easy_->get(), CURLPAUSE_CONT);
  if (rc != CURLE_OK) OnCurlDone(rc);
}

void CurlTransfer::EndPieces() {
  fed_ = false;
  if (!over()) call_->sink().OnPiecesEnd();
}

void CurlTransfer::DeliverEarlyEnd() {
  if (early_end_ && use_ == Use::kDrain) call_->Done(*std::exchange(early_end_, std::nullopt));
}

void CurlTransfer::OnCurlDone(CURLcode code) {
  if (std::exchange(redo_, false) && !call_->cancelled()) {
    Detach();
    if (Status started = StartHop(); !started) End(std::move(started));
    return;
  }
  if (use_ == Use::kRedirect && phase_ == Phase::kBody && !call_->cancelled()) {
    NextHop();
    return;
  }
  End(Outcome(code));
}

// What `code` and what was decided in the callbacks come to. Before Detach: asks the handle.
Status CurlTransfer::Outcome(CURLcode code) {
  if (call_->cancelled()) return MakeError(Code::kCancelled, What() + ": cancelled");
  if (early_end_) return *std::exchange(early_end_, std::nullopt);
  if (use_ == Use::kDrain) return {};
  if (broken_off_ && code != CURLE_OK) return *broken_off_;
  if (code == CURLE_OK && phase_ == Phase::kBody) return {};
  if (code == CURLE_OK) {
    return MakeError(Code::kUnavailable,
                     What() + ": the connection closed inside the answer's head");
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Late("no connection within " + HumanDuration(shared_.options.connect_timeout));
  }
  Error error = CurlError(code, What(), easy_->error_text(), easy_->OsErrno());
  if (body_bytes_ > 0) error.context += " (after " + std::to_string(body_bytes_) + " bytes)";
  return error;
}

void CurlTransfer::NextHop() {
  Detach();
  if (redirects_ >= call_->request.max_redirects) {
    End(MakeError(Code::kBadResponse, What() + ": more than " +
                                          std::to_string(call_->request.max_redirects) +
                                          " redirects, the last one from here"));
    return;
  }
  ++redirects_;
  NoteRedirect(parser_->head(), &redirect_headers_);
  Result<HttpHop> next = FollowRedirect(std::move(hop_), parser_->head());
  if (!next) {
    hop_ = call_->target.hop;
    End(std::move(next).error());
    return;
  }
  hop_ = std::move(next).value();
  if (Status started = StartHop(); !started) End(std::move(started));
}

void CurlTransfer::Detach() {
  if (!attached_) return;
  attached_ = false;
  curl_multi_remove_handle(shared_.multi, easy_->get());
}

void CurlTransfer::Cancel() {
  if (phase_ == Phase::kQueued) shared_.mailbox.Remove(*call_);
  End(MakeError(Code::kCancelled, What() + ": cancelled"));
}

void CurlTransfer::Refuse() {
  End(MakeError(Code::kTooManyRequests,
                call_->target.authority + " asked for fewer requests; read-ahead waits"));
}

void CurlTransfer::End(Status status) {
  if (phase_ == Phase::kOver) return;
  Detach();
  phase_ = Phase::kOver;
  LOG_DEBUG("{}: {} bytes, {}", What(), body_bytes_, status ? "done" : status.error().ToString());
  if (easy_ != nullptr) shared_.easies.Give(std::move(easy_));
  if (origin_ != nullptr) {
    FlushBytes();
    const bool transport = !status &&
                           (status.error().code == Code::kUnavailable ||
                            status.error().code == Code::kDeadlineExceeded) &&
                           status.error().http_status == 0;
    shared_.mailbox.Release(*origin_, slot_, transport ? status.error().context : std::string());
    origin_ = nullptr;
  }
  call_->Done(std::move(status));
}

void CurlTransfer::FlushBytes() {
  shared_.mailbox.AddBytes(*origin_, std::exchange(unreported_bytes_, 0));
}

std::string CurlTransfer::What() const {
  const Url& url = phase_ == Phase::kQueued ? call_->target.hop.url : hop_.url;
  return call_->request.method + ' ' + RedactUrl(url.ToString());
}

Error CurlTransfer::Late(const std::string& why) const {
  return MakeError(Code::kDeadlineExceeded, What() + ": " + why);
}

TimePoint CurlTransfer::PhaseDeadline() const {
  switch (phase_) {
    case Phase::kQueued:
    case Phase::kOver:
      return kNoDeadline;
    case Phase::kConnecting:
      return phase_since_ + shared_.options.connect_timeout;
    case Phase::kHead:
      return phase_since_ + call_->request.first_byte_timeout;
    case Phase::kBody:
      if (use_ != Use::kDeliver) return phase_since_ + kDrainTime;
      return paused_ ? kNoDeadline : phase_since_ + call_->request.stall_timeout;
  }
  return kNoDeadline;
}

TimePoint CurlTransfer::NextTimer() const {
  if (use_ == Use::kDrain) return PhaseDeadline();
  return std::min(PhaseDeadline(), call_->request.deadline);
}

std::optional<Error> CurlTransfer::Overdue(TimePoint now) const {
  if (now >= call_->request.deadline) {
    const char* where = phase_ == Phase::kQueued       ? ", waiting for its turn"
                        : phase_ == Phase::kConnecting ? ", while connecting"
                        : phase_ == Phase::kHead       ? ", waiting for the answer"
                                                       : ", reading the body";
    return Late("deadline passed after " + HumanDuration(now - arrived_at_) + where);
  }
  if (now < PhaseDeadline()) return std::nullopt;
  switch (phase_) {
    case Phase::kConnecting:
      return Late("no connection within " + HumanDuration(shared_.options.connect_timeout));
    case Phase::kHead:
      return Late("connected, but no answer within " +
                  HumanDuration(call_->request.first_byte_timeout));
    default:
      return Late("no byte of the body for " + HumanDuration(call_->request.stall_timeout) +
                  ", after " + std::to_string(body_bytes_) + " bytes");
  }
}

void CurlTransfer::OnTimer(TimePoint now) {
  if (over() || now < NextTimer()) return;
  if (use_ == Use::kDrain) {  // its call has ended already
    End({});
  } else if (use_ == Use::kRedirect && now < call_->request.deadline) {
    NextHop();
  } else if (auto late = Overdue(now)) {
    if (phase_ == Phase::kQueued) shared_.mailbox.Remove(*call_);
    End(std::move(*late));
  }
}

}  // namespace dartfs::core
