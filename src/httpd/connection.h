// Connection: one client's socket: requests in, answers out, one after another (RFC 9112). Part of
// the server; the loop's thread alone but for what Exchange calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/unique_fd.h"
#include "httpd/event_loop.h"
#include "httpd/exchange.h"
#include "httpd/limits.h"
#include "httpd/request.h"

namespace dartfs::httpd {

class Connection;

// What connections tell their server.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  virtual void OnRequest(ExchangePtr exchange) = 0;
  virtual bool ServesWhenFull(const Request& request, const Listener& listener) const = 0;
  virtual void OnAnswered(const AccessRecord& record) = 0;
  // The last call of a connection.
  virtual void OnClosed(Connection& connection) = 0;
};

struct ConnectionOptions {
  Listener listener;
  std::string client;  // as Exchange::client
  ServerLimits limits;
  // Exchanges that somebody still holds.
  std::shared_ptr<std::atomic<size_t>> exchanges = std::make_shared<std::atomic<size_t>>(0);
  bool refuse = false;  // beyond the limit: its one request is answered, usually 503
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<EventLoop> loop, core::UniqueFd socket, ConnectionOptions options,
             ConnectionEvents& events);
  ~Connection();

  void Start();
  // Whether a time limit has passed is looked at now.
  void Tick();
  // No further request: closes at once when idle, else after the answer under way.
  void Drain();
  void Close();

 private:
  friend class ConnectionLink;
  enum class State : uint8_t {
    kReading,    // for a request's head
    kHandling,   // somebody works on the answer
    kFirst,      // the answer's first piece is awaited
    kSending,    // head and body
    kTaken,      // what it has been handed over to reads and writes its socket
    kLingering,  // all is sent; what the client still sends is thrown away, so that it gets it
    kClosed,
  };
  enum class Sent : uint8_t { kAll, kBlocked, kBroken };
  struct Outgoing;

  void OnReady(bool readable, bool writable);
  void Watch(bool write);
  void Read();
  void Take(std::string_view bytes);
  void Refuse(const BadRequest& bad);
  void Expect(const Request& request, bool keep_alive);
  void Dispatch(Request request);
  void RefuseBusy();
  void OnAnswer(uint64_t exchange, ResponseHead head, std::unique_ptr<Body> body, AccessNote note);
  void OnHandOver(uint64_t exchange, ResponseHead head, std::unique_ptr<Takeover> takeover,
                  AccessNote note);
  void Begin(ResponseHead head, AccessNote note);
  void StartTakeover();
  void SendHead();
  BodyWaker MakeWaker();
  void OnWake(uint64_t exchange);
  void Drive();
  bool Pull();
  bool Frame();
  bool FailBody(const core::Error& error);
  void EndForWant();
  Sent SendPending();
  Sent SendText();
  Sent SendFile();
  static Sent Failed();
  void CountSent(uint64_t bytes, BytesFrom from);
  void Cork(bool on);
  void Progress();
  void EndAnswer();
  void Linger();
  void Report(bool complete);
  void CheckSending(core::TimePoint now);

  const std::shared_ptr<EventLoop> loop_;
  const core::UniqueFd socket_;
  const ConnectionOptions options_;
  ConnectionEvents& events_;
  FdWatch watch_;
  RequestParser parser_;
  State state_ = State::kReading;
  std::string early_;  // bytes behind the request that is being answered
  bool taking_ = false;
  bool may_read_ = true;
  bool draining_ = false;
  bool waiting_to_write_ = false;
  bool corked_ = false;
  uint64_t turn_left_ = 0;  // bytes it may send before others do
  uint64_t exchange_ = 0;   // number of the one under way
  core::TimePoint since_;   // the beginning of the state; of kReading, of the request
  std::unique_ptr<Outgoing> out_;
  std::unique_ptr<Outgoing> spare_;  // of the last answer, for the next
  std::unique_ptr<Takeover> takeover_;
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace dartfs::httpd
