// Exchange: one request and its one answer. A Handler gets it on an event thread, keeps it for as
// long as it likes, and answers from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "httpd/body.h"
#include "httpd/request.h"
#include "httpd/response.h"

namespace dartfs::httpd {

class EventLoop;

// Which of a node's listeners a request has come to.
struct Listener {
  bool client = true;  // serves local programs
  bool peer = true;    // serves other nodes
  bool admin = true;   // serves the operator
  bool loopback = true;
  uint16_t port = 0;  // 0: a socket without one
};

// Whom an exchange serves. kNone: it got no further than the server's own answer.
enum class Plane : uint8_t { kNone, kClient, kPeer, kAdmin };
inline constexpr size_t kPlanes = 4;

// What the access log says of an exchange besides what was sent.
struct AccessNote {
  Plane plane = Plane::kNone;
  std::string trace_id;  // of the request's traceparent, checked; empty: none
};

// An exchange that is over; its texts for the call in which it is told.
struct AccessRecord {
  int64_t unix_ms = 0;  // of its end
  std::string_view client;
  std::string_view method;
  std::string_view target;  // as sent, its query with it: not to be shown as it is
  int status = 0;
  uint64_t sent = 0;                           // bytes of the body
  std::array<uint64_t, kBytesFrom> sent_by{};  // the same by BytesFrom
  bool complete = false;                       // all of the answer has gone out
  core::Duration took{};
  AccessNote note;
};

// The socket of a client that is spoken HTTP with no more.
struct TakenSocket {
  int fd = -1;       // non-blocking, watched by nobody; its connection closes it
  std::string more;  // what the client has sent behind its request
  // Closes the connection, which destroys the Takeover by a later task; once. `complete`: both
  // sides had said all they had to say.
  core::UniqueFunction<void(bool complete)> end;
};

// What a connection has become after a CONNECT. Its connection owns it and counts as open as long
// as it lives; that one's event thread alone.
class Takeover {
 public:
  virtual ~Takeover() = default;
  // Once, when the answer's head has gone out. May call `end`.
  virtual void Start(TakenSocket client) = 0;
  virtual void Tick() = 0;                 // every EventLoop::kTick, once started
  virtual uint64_t to_client() const = 0;  // bytes that the client has been sent, for its record
};

// Of one connection, used by Exchange. Any thread.
class ExchangeLink {
 public:
  virtual ~ExchangeLink() = default;
  virtual void Answer(ResponseHead head, std::unique_ptr<Body> body, AccessNote note) = 0;
  virtual void HandOver(ResponseHead head, std::unique_ptr<Takeover> takeover, AccessNote note) = 0;
  virtual std::shared_ptr<EventLoop> loop() const = 0;
  virtual bool gone() const = 0;
};

class Exchange {
 public:
  Exchange(Request&& request, const Listener& listener, const std::string& client,
           std::shared_ptr<ExchangeLink> link);
  ~Exchange();  // unanswered: 500
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const { return request_; }
  const Listener& listener() const { return listener_; }
  const std::string& client() const { return client_; }  // "127.0.0.1:50312", "unix"
  bool is_head() const { return request_.method == "HEAD"; }
  AccessNote& note() { return note_; }
  // The client has hung up, as far as one can see: an answer would reach nobody.
  bool gone() const { return link_->gone(); }

  // The one answer; a second is ignored. With kLength and no body: for HEAD, 304 and the like, or a
  // content_length of zero. The body's first piece is pulled before the status line goes out: an
  // error there is answered as ErrorAnswer says; a later one, or an end before content_length
  // bytes, cuts the connection. The body of a HEAD is dropped unpulled.
  void Respond(ResponseHead head, std::unique_ptr<Body> body = nullptr);
  // A line for people as text/plain.
  void RespondText(int status, std::string text);
  void RespondText(ResponseHead head, std::string text);
  void RespondError(const core::Error& error);
  // The answer to a CONNECT: the head as it is, without a length, and from then on the connection
  // is `takeover`'s, until the server cuts it off. Where the client has gone, `takeover` is
  // destroyed unstarted. No time limit of the server's holds for it.
  void HandOver(ResponseHead head, std::unique_ptr<Takeover> takeover);
  // The connection's event thread.
  std::shared_ptr<EventLoop> loop() const { return link_->loop(); }

 private:
  const Request request_;
  const Listener listener_;
  const std::string client_;
  const std::shared_ptr<ExchangeLink> link_;
  AccessNote note_;
  bool answered_ = false;
};

using ExchangePtr = std::unique_ptr<Exchange>;

class Handler {
 public:
  virtual ~Handler() = default;
  // On an event thread: must not block. Outlives all exchanges.
  virtual void Handle(ExchangePtr exchange) = 0;
  // Whether that request is answered even on a connection beyond the limit, where others are told
  // 503. Few can be, at a time.
  virtual bool ServesWhenFull(const Request& request, const Listener& listener) const {
    (void)request, (void)listener;
    return false;
  }
};

struct TextAnswer {
  ResponseHead head;
  std::string text;
};
// Of an error before any byte went out: status_map's status, WWW-Authenticate and Retry-After where
// they belong, and a line that says what happened.
TextAnswer ErrorAnswer(const core::Error& error);

}  // namespace dartfs::httpd
