// CurlTransfer: one call on its transfer thread, from its arrival to its end.
//
//   queued --Start--> connecting -> awaiting the head -> body -> over
//                         ^------------ redirect ---------'
//
// A body nobody wants (a redirect's, or one whose head the sink refused) is read to its end where
// that is near, so that the connection stays usable, else the connection is closed. All methods
// and callbacks run on the transfer thread; the loop owns it and looks at it again (`over`,
// `NextTimer`) after each of them.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/io/curl_easy.h"
#include "core/io/curl_mailbox.h"
#include "core/io/curl_sockets.h"
#include "core/io/http_head.h"
#include "core/io/origin_policy.h"

namespace dartfs::core {

class CurlTransfer;

// What the transfers of one thread share; the loop owns it.
struct CurlShared {
  const HttpClientOptions& options;
  const CurrentOriginPolicy& policy;
  CurlMailbox& mailbox;
  CURLM* multi;
  CurlSockets& sockets;
  CurlEasyPool easies;
  std::vector<CurlTransfer*> changed;  // in a callback: the loop must look at their timers
  std::vector<CurlTransfer*> fed;      // in a callback: have delivered pieces of a body
};

class CurlTransfer final {
 public:
  CurlTransfer(CurlShared& shared, CurlCallPtr call);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  static CurlCallbacks Callbacks(CurlSockets& sockets);

  void Start(const OriginTable::Ready& ready);
  void Cancel();
  void Resume();
  void Refuse();                   // from the queue, by a throttle
  void OnCurlDone(CURLcode code);  // CURLMSG_DONE
  void OnTimer(TimePoint now);
  void DeliverEarlyEnd();  // OnDone of a call whose body is only drained
  void EndPieces();        // after those of one round of the loop
  TimePoint NextTimer() const;
  bool over() const { return phase_ == Phase::kOver; }
  uint64_t id() const { return call_->id; }

  TimePoint armed_at = kNoDeadline;  // the loop's

 private:
  enum class Phase : uint8_t { kQueued, kConnecting, kHead, kBody, kOver };
  // What becomes of the body.
  enum class Use : uint8_t { kDeliver, kDrain, kRedirect };

  bool OnHeaderLine(std::string_view line);
  bool OnHead();
  bool Discard(Use use);
  size_t OnBody(std::span<const std::byte> bytes);
  curl_socket_t OnSocket(const curl_sockaddr& address);
  struct Ends {
    const char* local_ip;
    int local_port;
    const char* peer_ip;
    int peer_port;
  };
  bool OnConnected(const Ends& ends);  // false: not over this connection

  Status StartHop();
  Status CheckUrl();
  Status CheckAddress(const IpAddress& address) const;
  void NextHop();
  void Detach();
  void End(Status status);
  void FlushBytes();
  Status Outcome(CURLcode code);
  std::string What() const;
  Error Late(const std::string& why) const;
  std::optional<Error> Overdue(TimePoint now) const;
  TimePoint PhaseDeadline() const;

  CurlShared& shared_;
  const CurlCallPtr call_;
  const TimePoint arrived_at_;
  Phase phase_ = Phase::kQueued;
  CurlMailbox::Origin* origin_ = nullptr;  // with slot_, from Start to End
  OriginQueue::Slot slot_;

  HttpHop hop_;
  std::string proxy_;                           // of the hop; empty: none
  std::shared_ptr<const OriginPolicy> policy_;  // of the hop
  int redirects_ = 0;
  std::vector<HttpHeader> redirect_headers_;
  std::unique_ptr<CurlEasy> easy_;
  bool attached_ = false;  // to the multi handle
  std::unique_ptr<HeadParser> parser_;
  Use use_ = Use::kDeliver;
  TimePoint phase_since_;  // the hop's start, the connection, or the last byte
  bool paused_ = false;
  bool fed_ = false;   // among those of CurlShared
  bool redo_ = false;  // the same hop once more, over another connection
  uint64_t drain_left_ = 0;
  uint64_t unreported_bytes_ = 0;
  uint64_t body_bytes_ = 0;
  std::optional<Error> broken_off_;  // why we ended it, decided inside a callback
  std::optional<Error> early_end_;   // to be told before the drain is through
};

}  // namespace dartfs::core
