#include "httpd/base64.h"

#include <openssl/evp.h>

namespace dartfs::httpd {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // a NUL is written behind
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), Bytes(bytes),
                                     static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

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

std::string BasicAuthorization(std::string_view user, std::string_view password) {
  return "Basic " + Base64Encode(std::string(user).append(":").append(password));
}

}  // namespace dartfs::httpd
