// Which proxy of the environment a URL is asked through. Decided here, by libcurl's rules, and told
// to libcurl: the origin policy must know it before a connection is made. Pure but for Read.
#pragma once

#include <string>

#include "core/base/url.h"

namespace dartfs::core {

struct ProxyEnvironment {
  std::string http;      // http_proxy; not HTTP_PROXY, which a CGI's client could set
  std::string https;     // https_proxy, HTTPS_PROXY
  std::string all;       // all_proxy, ALL_PROXY: where the scheme's own is empty
  std::string no_proxy;  // no_proxy, NO_PROXY: "*", or domains (with all below), addresses, blocks

  static ProxyEnvironment Read();  // getenv

  // The proxy as it stands in the environment; empty: none.
  std::string For(const Url& url) const;
};

}  // namespace dartfs::core
