#include "httpd/base64.h"

#include <openssl/evp.h>

namespace dartfs::httpd {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::optional<std::string> Base64Decode(std::string_view text) {
  // The library skips spaces around, and gives zero bytes for the padding.
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (text.size() % 4 != 0 ||
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") <
          text.size() - padding) {
    return std::nullopt;
  }
  std::string out(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(text),
                                     static_cast<int>(text.size()));
  if (length < 0 || static_cast<size_t>(length) != out.size()) return std::nullopt;
  out.resize(out.size() - padding);
  return out;
}

}  // namespace dartfs::httpd
