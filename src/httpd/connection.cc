#include "httpd/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <linux/sockios.h>

#include "core/base/log.h"
#include "core/base/text.h"
#include "httpd/connection_link.h"

namespace dartfs::httpd {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// Then it is the other connections' turn. As much as a socket's buffer takes (tcp_wmem's usual
// limit): with less, a client that is as fast as the node is woken for each part of an answer.
constexpr uint64_t kTurnBytes = 4 * 1024 * 1024;
constexpr uint64_t kCorkBytes = 64 * 1024;  // of a piece that is sent in full segments
constexpr size_t kSpareBytes = 4096;        // of text that an idle connection keeps
constexpr core::Duration kLinger = std::chrono::seconds(2);
// Who has just connected is about to ask, and would take a close for a failure.
constexpr core::Duration kFresh = std::chrono::milliseconds(500);

}  // namespace

// The answer under way, from the request on.
struct Connection::Outgoing {
  std::string method, target;
  int minor_version = 1;
  bool keep_alive = true;
  core::TimePoint begun{};

  ResponseHead head;
  std::unique_ptr<Body> body;
  AccessNote note;
  bool chunk_open = false;  // a chunk's bytes have been given, not yet the line end behind them
  bool ended = false;       // all there will be is below
  uint64_t pulled = 0;      // bytes of the body

  std::string text;  // goes before the piece
  size_t text_at = 0;
  MemoryPiece memory;
  FilePiece file;
  uint64_t sent = 0;  // bytes of the body, as far as pieces go
  std::array<uint64_t, kBytesFrom> sent_by{};
  bool rested = false;  // Body::Rest has been called since the last progress
  int unsent_in_socket = 0;
  core::TimePoint progress{};
  std::optional<core::TimePoint> wanting;  // since then the body has had nothing to give

  bool HasText() const { return text_at < text.size(); }
  bool HasPiece() const { return !memory.bytes.empty() || file.length > 0; }
  uint64_t PieceLeft() const { return memory.bytes.size() + file.length; }
  void Count(uint64_t bytes, BytesFrom from) {
    sent += bytes;
    sent_by[static_cast<size_t>(from)] += bytes;
  }
  // As new, with the memory of its texts.
  void Renew() {
    Outgoing fresh;
    fresh.method.swap(method);
    fresh.target.swap(target);
    fresh.text.swap(text);
    fresh.text.clear();
    *this = std::move(fresh);
  }
};

Connection::Connection(std::shared_ptr<EventLoop> loop, core::UniqueFd socket,
                       ConnectionOptions options, ConnectionEvents& events)
    : loop_(std::move(loop)),
      socket_(std::move(socket)),
      options_(std::move(options)),
      events_(events),
      watch_(*loop_, socket_.get(),
             [this](bool readable, bool writable) { OnReady(readable, writable); }),
      parser_(options_.limits.request),
      since_(loop_->now()) {}

Connection::~Connection() = default;

void Connection::Start() { Watch(false); }

// Reading is given up while an answer is under way and something comes: what is sent meanwhile
// waits in the kernel, and the client's end with it.
void Connection::OnReady(bool readable, bool writable) {
  const auto self = shared_from_this();
  if (writable && (state_ == State::kSending || state_ == State::kFirst)) Drive();
  if (!readable || state_ == State::kClosed) return;
  if (state_ == State::kReading || state_ == State::kLingering) {
    Read();
  } else {
    may_read_ = false;
    Watch(waiting_to_write_);
  }
}

void Connection::Watch(bool write) {
  waiting_to_write_ = write;
  watch_.Want(may_read_, write);
}

void Connection::Read() {
  static thread_local std::array<char, kReadBytes> scratch;
  const ssize_t got = recv(socket_.get(), scratch.data(), scratch.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Close();
  if (got == 0) {
    // Nothing under way, nothing to come.
    return Close();
  }
  if (state_ == State::kLingering) return;
  Take({scratch.data(), static_cast<size_t>(got)});
}

// Requests are taken from here alone: an answer that is sent on the spot returns to this loop.
void Connection::Take(std::string_view bytes) {
  taking_ = true;
  while (state_ == State::kReading && !bytes.empty()) {
    if (!parser_.started()) since_ = loop_->now();
    bytes.remove_prefix(parser_.Feed(bytes));
    if (parser_.state() == RequestParser::State::kBad) {
      Refuse(parser_.bad());
    } else if (parser_.state() == RequestParser::State::kDone) {
      Dispatch(parser_.Take());
    }
  }
  taking_ = false;
  if (state_ != State::kClosed && state_ != State::kLingering) early_ = bytes;
}

void Connection::Refuse(const BadRequest& bad) {
  Expect({}, false);
  ResponseHead head;
  head.status = bad.status;
  std::string text = bad.why + "\n";
  head.Add("Content-Type", "text/plain; charset=utf-8");
  head.content_length = text.size();
  OnAnswer(exchange_, std::move(head), MakeTextBody(std::move(text)), {});
}

// An answer is due from now on.
void Connection::Expect(const Request& request, bool keep_alive) {
  ++exchange_;
  state_ = State::kHandling;
  out_ = spare_ != nullptr ? std::move(spare_) : std::make_unique<Outgoing>();
  out_->method = request.method;
  out_->target = request.target;
  out_->minor_version = request.minor_version;
  out_->keep_alive = keep_alive && !draining_;
  out_->begun = loop_->now();
  since_ = loop_->now();
}

void Connection::Dispatch(Request request) {
  // A body is never read: the connection ends with the answer. So it does where a CONNECT is
  // refused: what comes behind one is meant for somebody else, and must not be taken for requests.
  Expect(request, request.keep_alive && !request.has_body() && !request.expects_continue &&
                      request.method != "CONNECT");
  if (options_.refuse) {
    out_->keep_alive = false;
    if (!events_.ServesWhenFull(request, options_.listener)) return RefuseBusy();
  }
  auto link = std::make_shared<ConnectionLink>(loop_, weak_from_this(), exchange_, gone_,
                                               options_.exchanges);
  events_.OnRequest(std::make_unique<Exchange>(std::move(request), options_.listener,
                                               options_.client, std::move(link)));
}

void Connection::RefuseBusy() {
  TextAnswer busy = ErrorAnswer(core::MakeError(
      core::Code::kBusy, "too many connections are open here (--max-connections): try again soon"));
  OnAnswer(exchange_, std::move(busy.head), MakeTextBody(std::move(busy.text)), {});
}

void Connection::OnAnswer(uint64_t exchange, ResponseHead head, std::unique_ptr<Body> body,
                          AccessNote note) {
  if (exchange != exchange_ || state_ != State::kHandling) return;
  Begin(std::move(head), std::move(note));
  Outgoing& out = *out_;
  if (draining_) out.keep_alive = false;
  const bool has_body = out.method != "HEAD" && out.head.framing != Framing::kNone &&
                        !(out.head.framing == Framing::kLength && out.head.content_length == 0);
  if (out.head.framing == Framing::kChunked && out.minor_version == 0) {
    out.head.framing = Framing::kClose;
  }
  if (out.head.framing == Framing::kClose) out.keep_alive = false;
  if (has_body && body != nullptr) {
    out.body = std::move(body);
    state_ = State::kFirst;
  } else {
    out.ended = true;
    state_ = State::kSending;
    SendHead();
  }
  Drive();
}

void Connection::Begin(ResponseHead head, AccessNote note) {
  out_->head = std::move(head);
  out_->note = std::move(note);
  out_->progress = loop_->now();
}

void Connection::OnHandOver(uint64_t exchange, ResponseHead head,
                            std::unique_ptr<Takeover> takeover, AccessNote note) {
  if (exchange != exchange_ || state_ != State::kHandling) return;
  Begin(std::move(head), std::move(note));
  takeover_ = std::move(takeover);
  out_->ended = true;
  out_->keep_alive = true;  // it goes on, though not as HTTP
  state_ = State::kSending;
  SendHead();
  Drive();
}

void Connection::StartTakeover() {
  state_ = State::kTaken;
  may_read_ = false;
  Watch(false);
  TakenSocket client;
  client.fd = socket_.get();
  client.more = std::exchange(early_, {});
  client.end = [this](bool complete) {
    if (state_ == State::kClosed) return;
    out_->Count(takeover_->to_client(), BytesFrom::kPass);
    Report(complete);
    out_.reset();
    Close();
  };
  takeover_->Start(std::move(client));
}

void Connection::SendHead() {
  Outgoing& out = *out_;
  const std::string behind = out.text;  // usually nothing
  out.text.clear();
  RenderHead(out.head,
             {out.keep_alive, takeover_ == nullptr ? out.minor_version : 1, loop_->unix_now()},
             &out.text);
  out.text += behind;
  out.text_at = 0;
}

BodyWaker Connection::MakeWaker() {
  return [loop = loop_, weak = weak_from_this(), exchange = exchange_] {
    loop->Post([weak, exchange] {
      if (const auto self = weak.lock()) self->OnWake(exchange);
    });
  };
}

void Connection::OnWake(uint64_t exchange) {
  if (exchange != exchange_) return;
  if (state_ == State::kFirst || state_ == State::kSending) Drive();
}

void Connection::Drive() {
  const auto self = shared_from_this();
  turn_left_ = kTurnBytes;
  while (state_ == State::kFirst || state_ == State::kSending) {
    const Sent sent = SendPending();
    if (sent == Sent::kBroken) return Close();
    if (sent == Sent::kBlocked) return Watch(true);
    if (out_->ended) return EndAnswer();
    if (turn_left_ == 0) return Watch(true);
    if (!Pull()) return;
  }
}

// False: there is nothing to be sent now, or the connection is no more.
bool Connection::Pull() {
  BodyStep step = out_->body->Next(kTurnBytes, MakeWaker());
  if (std::holds_alternative<NotYet>(step)) {
    if (!out_->wanting) out_->wanting = loop_->now();
    Cork(false);
    Watch(false);
    return false;
  }
  out_->wanting.reset();
  if (auto* error = std::get_if<core::Error>(&step)) return FailBody(*error);
  if (auto* memory = std::get_if<MemoryPiece>(&step)) {
    out_->memory = std::move(*memory);
  } else if (auto* file = std::get_if<FilePiece>(&step)) {
    out_->file = std::move(*file);
  } else {
    out_->ended = true;
  }
  return Frame();
}

// Puts around the piece, or the end, what tells the client where the body ends.
bool Connection::Frame() {
  Outgoing& out = *out_;
  out.text.clear();
  out.text_at = 0;
  const uint64_t piece = out.PieceLeft();
  out.pulled += piece;
  if (out.head.framing == Framing::kLength &&
      (out.pulled > out.head.content_length ||
       (out.ended && out.pulled < out.head.content_length))) {
    LOG_WARN("{}: an answer of {} bytes where {} were announced is cut off", options_.client,
             out.pulled, out.head.content_length);
    return FailBody(core::MakeError(core::Code::kInternal, "the answer has the wrong length"));
  }
  if (out.head.framing == Framing::kChunked) {
    if (std::exchange(out.chunk_open, !out.ended)) out.text += "\r\n";
    out.text += out.ended ? "0\r\n\r\n" : fmt::format("{:x}\r\n", piece);
  }
  if (out.head.framing == Framing::kLength && out.pulled == out.head.content_length) {
    out.ended = true;
  }
  if (state_ == State::kFirst) {
    state_ = State::kSending;
    SendHead();
  }
  return true;
}

// Before the head has gone out the error is the answer; afterwards the body stays incomplete, and
// the client can tell.
bool Connection::FailBody(const core::Error& error) {
  Outgoing& out = *out_;
  if (state_ == State::kFirst) {
    const ErrorForm form = out.body != nullptr ? out.body->error_form() : nullptr;
    TextAnswer answer = form != nullptr ? form(error) : ErrorAnswer(error);
    out.head = std::move(answer.head);
    out.body.reset();
    out.memory = {};
    out.file = {};
    out.text = std::move(answer.text);
    out.ended = true;
    state_ = State::kSending;
    SendHead();
    return true;
  }
  LOG_DEBUG("{}: an answer ends early: {}", options_.client, error.ToString());
  if (out.head.framing == Framing::kClose) {
    // Only a reset can say so.
    const linger now{1, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  Close();
  return false;
}

Connection::Sent Connection::SendPending() {
  Outgoing& out = *out_;
  if (out.PieceLeft() > kCorkBytes) Cork(true);
  while (out.HasText() || !out.memory.bytes.empty()) {
    const Sent sent = SendText();
    if (sent != Sent::kAll) return sent;
  }
  out.memory.keep.reset();
  while (out.file.length > 0) {
    if (turn_left_ == 0) return Sent::kBlocked;
    const Sent sent = SendFile();
    if (sent != Sent::kAll) return sent;
  }
  out.file.keep.reset();
  return Sent::kAll;
}

Connection::Sent Connection::SendText() {
  Outgoing& out = *out_;
  const std::string_view text = std::string_view(out.text).substr(out.text_at);
  std::array<iovec, 2> parts = {{
      {const_cast<char*>(text.data()), text.size()},
      {const_cast<std::byte*>(out.memory.bytes.data()), out.memory.bytes.size()},
  }};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const int more = out.file.length > 0 ? MSG_MORE : 0;
  const ssize_t written = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | more);
  if (written < 0) return Failed();
  Progress();
  const size_t of_text = std::min(static_cast<size_t>(written), text.size());
  const size_t of_memory = static_cast<size_t>(written) - of_text;
  out.text_at += of_text;
  out.memory.bytes = out.memory.bytes.subspan(of_memory);
  CountSent(of_memory, out.memory.from);
  return Sent::kAll;
}

Connection::Sent Connection::SendFile() {
  Outgoing& out = *out_;
  auto offset = static_cast<off_t>(out.file.offset);
  const ssize_t written =
      sendfile(socket_.get(), out.file.fd, &offset, std::min(out.file.length, turn_left_));
  if (written < 0) return Failed();
  if (written == 0) return Sent::kBroken;  // the file has been cut short
  Progress();
  out.file.offset += static_cast<uint64_t>(written);
  out.file.length -= static_cast<uint64_t>(written);
  CountSent(static_cast<uint64_t>(written), out.file.from);
  return Sent::kAll;
}

Connection::Sent Connection::Failed() {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Sent::kBlocked;
  return errno == EINTR ? Sent::kAll : Sent::kBroken;
}

void Connection::CountSent(uint64_t bytes, BytesFrom from) {
  out_->Count(bytes, from);
  turn_left_ -= std::min(turn_left_, bytes);
}

// Corked, a socket sends full segments alone. Where the client is as fast as the node it is woken
// half as often, which costs the node more than the copying. Uncorking sends what is left.
void Connection::Cork(bool on) {
  if (corked_ == on) return;
  corked_ = on;
  const int value = on ? 1 : 0;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

void Connection::Progress() {
  out_->progress = loop_->now();
  out_->rested = false;
}

void Connection::EndAnswer() {
  if (takeover_ != nullptr) return StartTakeover();
  Cork(false);
  Report(true);
  const bool keep = out_->keep_alive && !draining_;
  if (keep && out_->text.capacity() <= kSpareBytes) {
    out_->Renew();
    spare_ = std::move(out_);
  }
  out_.reset();
  if (!keep) return Linger();
  state_ = State::kReading;
  since_ = loop_->now();
  may_read_ = true;
  Watch(false);
  if (taking_ || early_.empty()) return;
  const std::string early = std::move(early_);
  early_.clear();
  Take(early);
}

// The connection ends. A close with unread bytes would reset it, and the client might not see the
// answer: so its bytes are taken until it closes, for a while.
void Connection::Linger() {
  early_.clear();
  state_ = State::kLingering;
  since_ = loop_->now();
  shutdown(socket_.get(), SHUT_WR);
  may_read_ = true;
  Watch(false);
}

void Connection::Report(bool complete) {
  const Outgoing& out = *out_;
  AccessRecord record;
  record.unix_ms = loop_->unix_ms();
  record.client = options_.client;
  record.method = out.method;
  record.target = out.target;
  record.status = out.head.status;
  record.sent = out.sent;
  record.sent_by = out.sent_by;
  record.complete = complete;
  record.took = core::RealClock().Now() - out.begun;
  record.note = out.note;
  events_.OnAnswered(record);
}

void Connection::Drain() {
  draining_ = true;
  if (out_ != nullptr) out_->keep_alive = false;
  if (state_ != State::kReading || parser_.started()) return;
  if (exchange_ == 0 && loop_->now() - since_ < kFresh) return;  // Tick closes it
  // A request that has come already is answered.
  char first = 0;
  if (recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) Close();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kTaken && out_ != nullptr) {
    out_->Count(takeover_->to_client(), BytesFrom::kPass);
  }
  if (out_ != nullptr && state_ != State::kHandling) Report(false);
  state_ = State::kClosed;
  gone_->store(true, std::memory_order_relaxed);
  watch_.Want(false, false);
  out_.reset();
  // Not now: its own functions may be running.
  loop_->Post([self = shared_from_this()] { self->events_.OnClosed(*self); });
}

void Connection::Tick() {
  const core::TimePoint now = loop_->now();
  const ServerLimits& limits = options_.limits;
  switch (state_) {
    case State::kReading:
      if (parser_.started() && now - since_ > limits.head_time) {
        return Refuse({408, "the request did not arrive in time"});
      }
      if (!parser_.started() && now - since_ > (draining_ ? kFresh : limits.idle_time)) Close();
      return;
    case State::kLingering:
      if (now - since_ > kLinger) Close();
      return;
    case State::kHandling:
      if (now - out_->begun > limits.total_time) Close();
      return;
    case State::kFirst:
    case State::kSending:
      if (now - out_->begun > limits.total_time) return Close();
      if (waiting_to_write_) return CheckSending(now);
      if (out_->wanting && now - *out_->wanting > limits.body_time) EndForWant();
      return;
    case State::kTaken:
      return takeover_->Tick();
    case State::kClosed:
      return;
  }
}

// Nothing comes that could be sent.
void Connection::EndForWant() {
  const core::Error late = core::MakeError(
      core::Code::kDeadlineExceeded,
      fmt::format("{}: nothing has come for {} s; whoever has the bytes does not answer in time "
                  "(--timeout)",
                  core::RedactUrl(out_->target), core::ToMillis(options_.limits.body_time) / 1000));
  if (FailBody(late)) Drive();
}

// The socket takes nothing. Whether the client does is seen by what is left in it.
void Connection::CheckSending(core::TimePoint now) {
  Outgoing& out = *out_;
  int unsent = 0;
  if (ioctl(socket_.get(), SIOCOUTQ, &unsent) == 0 && unsent != out.unsent_in_socket) {
    out.unsent_in_socket = unsent;
    out.progress = now;
    return;
  }
  const core::Duration idle = now - out.progress;
  if (idle > options_.limits.send_time) return Close();
  if (idle < options_.limits.rest_after || std::exchange(out.rested, true)) return;
  const uint64_t left = out.PieceLeft();
  if (out.body == nullptr || out.HasText() || out.head.framing == Framing::kChunked) return;
  if (!out.body->Rest(left)) return;
  out.pulled -= left;
  out.memory = {};
  out.file = {};
  if (left > 0) out.ended = false;
}

}  // namespace dartfs::httpd
