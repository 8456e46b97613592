// CurlLoop: one transfer thread over one multi handle. It sleeps in curl_multi_poll; its mailbox
// wakes it.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/result.h"
#include "core/io/curl_mailbox.h"
#include "core/io/curl_sockets.h"
#include "core/io/curl_transfer.h"
#include "core/io/http_client.h"
#include "core/io/origin_policy.h"

namespace dartfs::core {

class CurlLoop final {
 public:
  // `options` and `policy` outlive it.
  static Result<std::unique_ptr<CurlLoop>> Create(const std::string& name,
                                                  const HttpClientOptions& options,
                                                  const CurrentOriginPolicy& policy);
  ~CurlLoop();  // Stop
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  const std::shared_ptr<CurlMailbox>& mailbox() { return mailbox_; }
  // Ends all calls with kCancelled and joins. Not from a sink. Twice is fine, not at once.
  void Stop();

 private:
  struct MultiDeleter {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };

  CurlLoop(CURLM* multi, const HttpClientOptions& options, const CurrentOriginPolicy& policy);
  void Run();
  bool HandleMail(CurlMailbox::Mail mail);  // false: stop
  void Arrive(CurlMailbox::Arrival arrival);
  void StartReady();
  void ReadMessages();
  void EndPieces();
  void HandleChanged();
  void FireTimers();
  void Settle(CurlTransfer& transfer);
  void Sleep();
  void CancelAll();
  CurlTransfer* Find(uint64_t id);

  const std::shared_ptr<CurlMailbox> mailbox_;
  CurlSockets sockets_;  // before multi_, which closes them
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::thread thread_;

  // Of the transfer thread.
  CurlShared shared_;
  std::unordered_map<uint64_t, std::unique_ptr<CurlTransfer>> transfers_;
  std::set<std::pair<TimePoint, CurlTransfer*>> timers_;
  std::optional<TimePoint> throttle_ends_at_;
};

}  // namespace dartfs::core
