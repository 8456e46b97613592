#include "core/base/credentials.h"

#include <openssl/evp.h>

#include <vector>

namespace dartfs::core {

std::string BasicAuthorization(std::string_view user, std::string_view password) {
  const std::string text = std::string(user) + ":" + std::string(password);
  std::vector<unsigned char> encoded((text.size() + 2) / 3 * 4 + 1);
  const int length =
      EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size()));
  return "Basic " + std::string(encoded.begin(), encoded.begin() + length);
}

std::string AuthorizationOf(const Url& url) {
  const std::optional<Credentials> login = url.Login();
  return login ? BasicAuthorization(login->user, login->password) : "";
}

}  // namespace dartfs::core
