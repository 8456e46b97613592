// libcurl's handles in C++ hands: global state, easy handles and a pool of them.
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/http_client.h"
#include "core/io/http_redirect.h"

namespace dartfs::core {

// Once per process; never undone, since other threads may still be in libcurl at exit.
Status CurlGlobalInit();

struct CurlCallbacks {
  curl_write_callback header = nullptr;  // one line a call
  curl_write_callback body = nullptr;
  curl_opensocket_callback socket = nullptr;
  curl_closesocket_callback close = nullptr;  // its argument is close_owner
  void* close_owner = nullptr;                // outlives the multi handle: connections do, too
  curl_prereq_callback request = nullptr;     // a connection is there, the request goes out next
};

// One easy handle with what must live as long as libcurl may look at it. Options that are the same
// for all requests are set once, since curl_easy_reset and setting them anew cost more than a
// small request.
class CurlEasy final {
 public:
  static Result<std::unique_ptr<CurlEasy>> Create(const HttpClientOptions& options,
                                                  const CurlCallbacks& callbacks);
  ~CurlEasy();
  CurlEasy(const CurlEasy&) = delete;
  CurlEasy& operator=(const CurlEasy&) = delete;

  // What differs from request to request. `proxy` empty: none. `owner` is the callbacks' last
  // argument and CURLINFO_PRIVATE.
  Status Prepare(const HttpHop& hop, const std::string& proxy, void* owner);

  CURL* get() { return easy_; }
  const char* error_text() const { return error_text_.data(); }
  long OsErrno() const;

 private:
  CurlEasy(CURL* easy, const HttpClientOptions& options) : easy_(easy), options_(options) {}
  Status SetFixed(const CurlCallbacks& callbacks);
  void SetProxy(const std::string& proxy, CURLcode* rc);
  void SetUserAgent(const std::string& of_client, CURLcode* rc);

  CURL* const easy_;
  const HttpClientOptions& options_;  // outlives it
  std::string client_agent_;          // what SetUserAgent was last called with
  std::string proxy_;                 // SetProxy
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

// Of one transfer thread.
class CurlEasyPool final {
 public:
  CurlEasyPool(const HttpClientOptions& options, const CurlCallbacks& callbacks)
      : options_(options), callbacks_(callbacks) {}
  Result<std::unique_ptr<CurlEasy>> Take();
  void Give(std::unique_ptr<CurlEasy> easy);

 private:
  const HttpClientOptions& options_;
  const CurlCallbacks callbacks_;
  std::vector<std::unique_ptr<CurlEasy>> free_;
};

}  // namespace dartfs::core
