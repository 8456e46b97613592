#include "core/io/proxy_environment.h"

#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/base/text.h"
#include "core/io/address_policy.h"

namespace dartfs::core {

namespace {

std::string FirstSet(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

bool Excepts(std::string_view token, std::string_view host) {
  if (const auto address = ParseIpLiteral(host)) {
    const auto block = ParseCidr(token);
    return block && block->Contains(*address);
  }
  if (token.ends_with('.')) token.remove_suffix(1);
  if (token.starts_with('.')) token.remove_prefix(1);
  if (token.empty() || token.size() > host.size()) return false;
  if (!EqualsIgnoreCase(token, host.substr(host.size() - token.size()))) return false;
  return token.size() == host.size() || host[host.size() - token.size() - 1] == '.';
}

bool Excepted(std::string_view list, std::string_view host) {
  if (list == "*") return true;
  if (host.ends_with('.')) host.remove_suffix(1);
  while (!list.empty()) {
    const size_t end = list.find_first_of(", \t");
    if (end != 0 && Excepts(list.substr(0, end), host)) return true;
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return false;
}

}  // namespace

ProxyEnvironment ProxyEnvironment::Read() {
  ProxyEnvironment environment;
  environment.http = FirstSet({"http_proxy"});
  environment.https = FirstSet({"https_proxy", "HTTPS_PROXY"});
  environment.all = FirstSet({"all_proxy", "ALL_PROXY"});
  environment.no_proxy = FirstSet({"no_proxy", "NO_PROXY"});
  return environment;
}

std::string ProxyEnvironment::For(const Url& url) const {
  const std::string& own = url.scheme == "https" ? https : http;
  const std::string& proxy = own.empty() ? all : own;
  return proxy.empty() || Excepted(no_proxy, url.host) ? "" : proxy;
}

}  // namespace dartfs::core
