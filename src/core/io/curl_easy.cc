#include "core/io/curl_easy.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

// libcurl's largest: 16 KiB receives cost three times the CPU per byte.
constexpr long kReceiveBytes = 512 * 1024;
constexpr size_t kPooled = 64;

bool Append(curl_slist** list, const std::string& line) {
  curl_slist* longer = curl_slist_append(*list, line.c_str());
  if (longer == nullptr) return false;
  *list = longer;
  return true;
}

bool Has(const std::vector<HttpHeader>& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const HttpHeader& h) { return EqualsIgnoreCase(h.name, name); });
}

template <typename T>
void Set(CURL* easy, CURLoption option, T value, CURLcode* first_error) {
  const CURLcode rc = curl_easy_setopt(easy, option, value);
  if (rc != CURLE_OK && *first_error == CURLE_OK) *first_error = rc;
}

void SetConnection(CURL* easy, const HttpClientOptions& options, CURLcode* rc) {
  // HTTP/1.1 only. With h2, all blocks of an origin would share one TCP connection: one congestion
  // window, one lost segment that stops them all, one per-connection rate limit.
  Set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1), rc);
  Set(easy, CURLOPT_BUFFERSIZE, kReceiveBytes, rc);
  Set(easy, CURLOPT_TCP_NODELAY, 1L, rc);
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L, rc);
  Set(easy, CURLOPT_TCP_KEEPIDLE, 30L, rc);
  Set(easy, CURLOPT_TCP_KEEPINTVL, 10L, rc);
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS,
      std::max(1L, static_cast<long>(ToMillis(options.connect_timeout))), rc);
  const auto idle = std::chrono::duration_cast<std::chrono::seconds>(options.idle_timeout);
  Set(easy, CURLOPT_MAXAGE_CONN, std::max(1L, static_cast<long>(idle.count())), rc);
  // A cancelled call must not wait for a resolver that hangs.
  Set(easy, CURLOPT_QUICK_EXIT, 1L, rc);
  Set(easy, CURLOPT_NOSIGNAL, 1L, rc);
  // Nothing of the environment: SetProxy knows it.
  Set(easy, CURLOPT_PROXY, "", rc);
  Set(easy, CURLOPT_NOPROXY, "", rc);
  Set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L, rc);
  Set(easy, CURLOPT_SSL_VERIFYPEER, 1L, rc);
  Set(easy, CURLOPT_SSL_VERIFYHOST, 2L, rc);
  if (!options.ca_file.empty()) Set(easy, CURLOPT_CAINFO, options.ca_file.c_str(), rc);
}

void SetRequest(CURL* easy, const HttpClientOptions& options, CURLcode* rc) {
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https", rc);
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L, rc);
  Set(easy, CURLOPT_PATH_AS_IS, 1L, rc);
  Set(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L, rc);
  Set(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L, rc);
  Set(easy, CURLOPT_HTTP09_ALLOWED, 0L, rc);
  Set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED), rc);
  Set(easy, CURLOPT_USERAGENT, options.user_agent.c_str(), rc);
  Set(easy, CURLOPT_NOPROGRESS, 1L, rc);
}

}  // namespace

Status CurlGlobalInit() {
  static const CURLcode kResult = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kResult == CURLE_OK) return {};
  return MakeError(Code::kInternal, std::string("libcurl: ") + curl_easy_strerror(kResult));
}

Result<std::unique_ptr<CurlEasy>> CurlEasy::Create(const HttpClientOptions& options,
                                                   const CurlCallbacks& callbacks) {
  CURL* raw = curl_easy_init();
  if (raw == nullptr) return MakeError(Code::kInternal, "libcurl: no easy handle");
  std::unique_ptr<CurlEasy> easy(new CurlEasy(raw, options));
  TRY(easy->SetFixed(callbacks));
  return easy;
}

CurlEasy::~CurlEasy() {
  curl_easy_cleanup(easy_);
  curl_slist_free_all(headers_);
}

Status CurlEasy::SetFixed(const CurlCallbacks& callbacks) {
  CURLcode rc = CURLE_OK;
  SetConnection(easy_, options_, &rc);
  SetRequest(easy_, options_, &rc);
  Set(easy_, CURLOPT_ERRORBUFFER, error_text_.data(), &rc);
  Set(easy_, CURLOPT_HEADERFUNCTION, callbacks.header, &rc);
  Set(easy_, CURLOPT_WRITEFUNCTION, callbacks.body, &rc);
  Set(easy_, CURLOPT_OPENSOCKETFUNCTION, callbacks.socket, &rc);
  Set(easy_, CURLOPT_CLOSESOCKETFUNCTION, callbacks.close, &rc);
  Set(easy_, CURLOPT_CLOSESOCKETDATA, callbacks.close_owner, &rc);
  Set(easy_, CURLOPT_PREREQFUNCTION, callbacks.request, &rc);
  if (rc == CURLE_OK) return {};
  return MakeError(Code::kInternal, std::string("libcurl option: ") + curl_easy_strerror(rc));
}

void CurlEasy::SetUserAgent(const std::string& of_client, CURLcode* rc) {
  if (of_client == client_agent_) return;
  const std::string whole =
      of_client.empty() ? options_.user_agent : of_client + ' ' + options_.user_agent;
  Set(easy_, CURLOPT_USERAGENT, whole.c_str(), rc);
  client_agent_ = of_client;
}

void CurlEasy::SetProxy(const std::string& proxy, CURLcode* rc) {
  if (proxy == proxy_) return;
  Set(easy_, CURLOPT_PROXY, proxy.c_str(), rc);
  proxy_ = proxy;
}

Status CurlEasy::Prepare(const HttpHop& hop, const std::string& proxy, void* owner) {
  curl_slist* list = nullptr;
  bool listed = true;
  if (!Has(hop.headers, "accept-encoding")) listed &= Append(&list, "Accept-Encoding: identity");
  if (!hop.authorization.empty()) listed &= Append(&list, "Authorization: " + hop.authorization);
  if (!options_.via.empty()) listed &= Append(&list, "Via: " + options_.via);
  for (const HttpHeader& header : hop.headers) {
    // libcurl's way to send a header without a value ends in a semicolon.
    listed &=
        Append(&list, header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  CURLcode rc = listed ? CURLE_OK : CURLE_OUT_OF_MEMORY;
  error_text_[0] = '\0';
  Set(easy_, CURLOPT_HTTPHEADER, list, &rc);
  curl_slist_free_all(std::exchange(headers_, list));
  Set(easy_, CURLOPT_NOBODY, hop.head ? 1L : 0L, &rc);
  SetProxy(proxy, &rc);
  SetUserAgent(hop.user_agent, &rc);
  Set(easy_, CURLOPT_URL, hop.url.ToString().c_str(), &rc);
  Set(easy_, CURLOPT_HEADERDATA, owner, &rc);
  Set(easy_, CURLOPT_WRITEDATA, owner, &rc);
  Set(easy_, CURLOPT_OPENSOCKETDATA, owner, &rc);
  Set(easy_, CURLOPT_PREREQDATA, owner, &rc);
  Set(easy_, CURLOPT_PRIVATE, owner, &rc);
  if (rc == CURLE_OK) return {};
  return MakeError(Code::kInternal, std::string("libcurl option: ") + curl_easy_strerror(rc));
}

long CurlEasy::OsErrno() const {
  long value = 0;
  curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &value);
  return value;
}

Result<std::unique_ptr<CurlEasy>> CurlEasyPool::Take() {
  if (free_.empty()) return CurlEasy::Create(options_, callbacks_);
  std::unique_ptr<CurlEasy> easy = std::move(free_.back());
  free_.pop_back();
  return easy;
}

void CurlEasyPool::Give(std::unique_ptr<CurlEasy> easy) {
  if (free_.size() < kPooled) free_.push_back(std::move(easy));
}

}  // namespace dartfs::core
