#include "app/credentials.h"

#include <openssl/evp.h>

#include <vector>

namespace dartfs::app {

std::string AuthorizationOf(const core::Url& url) {
  const std::optional<core::Credentials> login = url.Login();
  if (!login) return "";
  const std::string text = login->user + ":" + login->password;
  std::vector<unsigned char> encoded((text.size() + 2) / 3 * 4 + 1);
  const int length =
      EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  return "Basic " + std::string(encoded.begin(), encoded.begin() + length);
}

}  // namespace dartfs::app
