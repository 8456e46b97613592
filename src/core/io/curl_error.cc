#include "core/io/curl_error.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

Code CodeOf(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Code::kDeadlineExceeded;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_UNSUPPORTED_PROTOCOL:  // an answer in HTTP/0.9; our own URLs are http or https
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_OUT_OF_MEMORY:  // 7.88 says this when one header line exceeds its 100 KiB
      return Code::kBadResponse;
    case CURLE_URL_MALFORMAT:
      return Code::kInvalidArgument;
    case CURLE_FAILED_INIT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_UNKNOWN_OPTION:
      return Code::kInternal;
    default:  // resolving, connecting, handshakes, resets, bodies cut short
      return Code::kUnavailable;
  }
}

const char* HintOf(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "; check the host's name and this machine's resolver";
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "; check http_proxy and https_proxy in the environment";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return "; if the certificate is signed by your own authority, name its file with --ca-file";
    case CURLE_PARTIAL_FILE:
      return "; the origin closed the connection before the end of the body";
    default:
      return "";
  }
}

}  // namespace

Error CurlError(CURLcode code, const std::string& what, const char* detail, long os_errno) {
  if (code == CURLE_OUT_OF_MEMORY) detail = "the head of the answer is too large to be taken";
  const char* text = detail != nullptr && *detail != '\0' ? detail : curl_easy_strerror(code);
  Error error = MakeError(CodeOf(code), what + ": " + EscapeForeign(text, 200) + HintOf(code));
  error.sys_errno = static_cast<int>(os_errno);
  return error;
}

std::string HumanDuration(Duration d) {
  const int64_t ms = ToMillis(d);
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms % 1000 == 0) return fmt::format("{} s", ms / 1000);
  return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000.0);
}

}  // namespace dartfs::core
