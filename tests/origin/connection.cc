#include "origin/connection.h"

#include <event2/event.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dartfs::origin {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kMaxHead = 64U << 10U;
constexpr std::uint64_t kMaxRequestBody = 64U << 20U;
constexpr std::size_t kPiece = 1U << 20U;             // of one system call
constexpr std::size_t kGeneratedPiece = 128U << 10U;  // stays in the processor's cache
constexpr int kMaxResetPolls = 2000;                  // of a millisecond each

timeval ToTimeval(microseconds time) {
  timeval out{};
  out.tv_sec = static_cast<time_t>(time.count() / 1000000);
  out.tv_usec = static_cast<suseconds_t>(time.count() % 1000000);
  return out;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Connection::Connection(event_base* base, int fd, Service& service)
    : service_(service),
      fd_(fd),
      number_(service.stats().ConnectionOpened()),
      readable_(event_new(base, fd, EV_READ | EV_PERSIST, OnReadable, this)),
      writable_(event_new(base, fd, EV_WRITE, OnWritable, this)),
      timer_(event_new(base, -1, 0, OnTimer, this)),
      tokens_at_(Clock::now()) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() {
  event_free(readable_);
  event_free(writable_);
  event_free(timer_);
  close(fd_);
  if (entry_) service_.stats().End(entry_);
  service_.stats().ConnectionClosed();
}

void Connection::Start(void (*on_dead)(Connection*, void*), void* arg) {
  on_dead_ = on_dead;
  on_dead_arg_ = arg;
  event_add(readable_, nullptr);
}

void Connection::OnReadable(int, short, void* self) {
  auto* connection = static_cast<Connection*>(self);
  connection->Read();
  connection->Finish();
}

void Connection::OnWritable(int, short, void* self) {
  auto* connection = static_cast<Connection*>(self);
  connection->Go();
  connection->Finish();
}

void Connection::OnTimer(int, short, void* self) {
  auto* connection = static_cast<Connection*>(self);
  connection->timer_fired_ = true;
  connection->Go();
  connection->Finish();
}

void Connection::Finish() {
  if (dead_) on_dead_(this, on_dead_arg_);  // destroys this
}

void Connection::Read() {
  std::array<char, 16384> piece;
  const ssize_t n = recv(fd_, piece.data(), piece.size(), 0);
  if (n < 0 && WouldBlock()) return;
  if (n < 0) {
    dead_ = true;
    return;
  }
  if (n == 0) {
    // The client may have closed its side only, and still wants its answer.
    peer_closed_ = true;
    event_del(readable_);
    const bool stalled = playing_ && script_.steps[step_].kind == Step::Kind::kStall;
    if (!playing_ || stalled) dead_ = true;
    return;
  }
  input_.append(piece.data(), static_cast<std::size_t>(n));
  // Requests piled up behind the one being answered: the rest stays in the kernel.
  if (playing_ && input_.size() > kMaxHead) event_del(readable_);
  if (!playing_) Go();
}

void Connection::Go() {
  while (!dead_) {
    if (playing_) Play();
    if (dead_ || playing_ || !TakeRequest()) return;
  }
}

// True when a script has begun.
bool Connection::TakeRequest() {
  const std::size_t end = input_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (input_.size() > kMaxHead) {
      StartScript(service_.Refuse(431));
      return true;
    }
    if (peer_closed_) dead_ = true;
    return false;
  }
  auto request = ParseRequestHead(std::string_view(input_).substr(0, end + 2));
  if (!request) {
    StartScript(service_.Refuse(400));
    return true;
  }
  return TakeBody(end + 4, std::move(*request));
}

bool Connection::TakeBody(std::size_t head_size, Request request) {
  const std::string* length = request.Find("Content-Length");
  const auto size = length == nullptr ? std::optional<std::uint64_t>(0) : ParseNumber(*length);
  if (!size || *size > kMaxRequestBody || request.Find("Transfer-Encoding") != nullptr) {
    StartScript(service_.Refuse(413));
    return true;
  }
  if (input_.size() - head_size < *size) {
    if (peer_closed_) dead_ = true;
    if (!continue_sent_ && request.Find("Expect") != nullptr) {
      continue_sent_ = true;
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      send(fd_, kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
    }
    return false;
  }
  continue_sent_ = false;
  request.body = input_.substr(head_size, *size);
  input_.erase(0, head_size + *size);
  Service::Play play = service_.Answer(request, number_, first_request_);
  first_request_ = false;
  entry_ = std::move(play.entry);
  StartScript(std::move(play.script));
  return true;
}

void Connection::StartScript(Script script) {
  script_ = std::move(script);
  step_ = 0;
  step_done_ = 0;
  playing_ = true;
}

void Connection::EndScript() {
  playing_ = false;
  if (entry_) service_.stats().End(entry_);
  entry_.reset();
  if (!script_.keep_alive) dead_ = true;
  script_ = {};
  if (!dead_ && !peer_closed_) event_add(readable_, nullptr);
}

void Connection::Play() {
  while (step_ < script_.steps.size()) {
    switch (PlayStep(script_.steps[step_])) {
      case Progress::kDone:
        break;
      case Progress::kBlocked:
        return;
      case Progress::kFailed:
        dead_ = true;
        return;
    }
    ++step_;
    step_done_ = 0;
  }
  EndScript();
}

Connection::Progress Connection::PlayStep(Step& step) {
  switch (step.kind) {
    case Step::Kind::kBytes:
      return SendText(step);
    case Step::Kind::kBody:
      return SendBody(step);
    case Step::Kind::kDrip:
      return Drip(step);
    case Step::Kind::kWait:
    case Step::Kind::kStall:
      return Wait(step);
    case Step::Kind::kReset:
      return Reset();
    case Step::Kind::kClose:
      return Progress::kFailed;
    case Step::Kind::kCall:
      step.call();
      return Progress::kDone;
  }
  return Progress::kFailed;
}

Connection::Progress Connection::SendText(Step& step) {
  const std::string_view left = std::string_view(step.text).substr(step_done_);
  if (left.empty()) return Progress::kDone;
  // The head and the body that follows leave in one segment where they fit.
  const bool more = script_.rate == 0 && step_ + 1 < script_.steps.size() &&
                    script_.steps[step_ + 1].kind == Step::Kind::kBody;
  const long n = send(fd_, left.data(), left.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
  if (n > 0 && step.body_bytes && entry_) {
    service_.stats().AddBodyBytes(*entry_, static_cast<std::uint64_t>(n));
  }
  if (n > 0 && static_cast<std::size_t>(n) == left.size()) return Progress::kDone;
  return AfterSend(n, step);
}

Connection::Progress Connection::SendBody(Step& step) {
  const std::uint64_t left = step.range.size() - step_done_;
  const std::uint64_t allowed = Allowance(std::min<std::uint64_t>(left, kPiece));
  if (allowed == 0) return BlockFor(std::chrono::milliseconds(5));
  const long n = SendSome(step, allowed);
  if (n > 0 && entry_) service_.stats().AddBodyBytes(*entry_, static_cast<std::uint64_t>(n));
  if (n > 0 && script_.rate > 0) tokens_ -= static_cast<std::uint64_t>(n);
  if (n > 0 && static_cast<std::uint64_t>(n) == left) return Progress::kDone;
  return AfterSend(n, step);
}

// One call of the kernel, so that connections of one thread take turns.
long Connection::SendSome(const Step& step, std::size_t limit) {
  const std::uint64_t offset = step.range.begin + step_done_;
  if (const auto* memory = std::get_if<Memory>(&step.body)) {
    return send(fd_, (*memory)->data() + offset, limit, MSG_NOSIGNAL);
  }
  if (const auto* file = std::get_if<File>(&step.body)) {
    auto at = static_cast<off_t>(offset);
    const ssize_t n = sendfile(fd_, (*file)->fd(), &at, limit);
    if (n == 0) errno = EIO;  // the file has shrunk
    return n == 0 ? -1 : n;
  }
  static thread_local std::array<char, kGeneratedPiece> piece;
  const std::size_t size = std::min(limit, piece.size());
  GenerateBytes(std::get<Generated>(step.body).seed, offset, piece.data(), size);
  return send(fd_, piece.data(), size, MSG_NOSIGNAL);
}

Connection::Progress Connection::AfterSend(long sent, Step&) {
  if (sent < 0 && !WouldBlock()) return Progress::kFailed;
  if (sent > 0) step_done_ += static_cast<std::uint64_t>(sent);
  event_add(writable_, nullptr);
  return Progress::kBlocked;
}

// A token bucket of a twentieth of a second, at least one byte.
std::uint64_t Connection::Allowance(std::uint64_t wanted) {
  if (script_.rate == 0) return wanted;
  const auto now = Clock::now();
  const double elapsed = std::chrono::duration<double>(now - tokens_at_).count();
  const auto earned = static_cast<std::uint64_t>(elapsed * static_cast<double>(script_.rate));
  if (earned > 0) {
    // By what was earned, so that no fraction of a byte is lost.
    const std::chrono::duration<double> spent(static_cast<double>(earned) /
                                              static_cast<double>(script_.rate));
    tokens_at_ += std::chrono::duration_cast<Clock::duration>(spent);
    tokens_ = std::min(tokens_ + earned, std::max<std::uint64_t>(script_.rate / 20, 1));
  }
  return std::min(tokens_, wanted);
}

Connection::Progress Connection::Drip(Step& step) {
  if (waiting_ && !timer_fired_) return Progress::kBlocked;
  waiting_ = timer_fired_ = false;
  if (step_done_ == step.text.size()) return Progress::kDone;
  const long n = send(fd_, step.text.data() + step_done_, 1, MSG_NOSIGNAL);
  if (n < 0) return AfterSend(n, step);
  ++step_done_;
  waiting_ = true;
  return BlockFor(step.wait);
}

Connection::Progress Connection::Wait(const Step& step) {
  if (waiting_ && !timer_fired_) return Progress::kBlocked;
  if (waiting_) {
    waiting_ = timer_fired_ = false;
    return Progress::kDone;
  }
  const bool stall = step.kind == Step::Kind::kStall;
  if (stall && peer_closed_) return Progress::kFailed;
  if (!stall && step.wait.count() == 0) return Progress::kDone;
  waiting_ = true;
  timer_fired_ = false;
  if (stall && step.wait.count() == 0) return Progress::kBlocked;
  return BlockFor(step.wait);
}

Connection::Progress Connection::Reset() {
  int unsent = 0;
  // A reset throws away what the client has not acknowledged.
  if (ioctl(fd_, SIOCOUTQ, &unsent) == 0 && unsent > 0 && ++reset_polls_ < kMaxResetPolls) {
    return BlockFor(std::chrono::milliseconds(1));
  }
  const linger hard{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  return Progress::kFailed;
}

Connection::Progress Connection::BlockFor(microseconds time) {
  timer_fired_ = false;
  const timeval timeout = ToTimeval(std::max(time, microseconds(1)));
  event_add(timer_, &timeout);
  return Progress::kBlocked;
}

}  // namespace dartfs::origin
