#include "core/io/host_port.h"

#include "core/base/text.h"
#include "core/io/address_policy.h"

namespace dartfs::core {

std::string HostPort::ToString() const {
  const bool bare_v6 = host.find(':') != std::string::npos;
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::optional<HostPort> SplitHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const auto port = ParseUint(text.substr(colon + 1));
  if (!port || *port > UINT16_MAX) return std::nullopt;
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || !ParseIpLiteral(host)) return std::nullopt;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  return HostPort{std::string(host), static_cast<uint16_t>(*port)};
}

}  // namespace dartfs::core
