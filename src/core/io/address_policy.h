// AddressPolicy: which addresses may be connected to (DESIGN.md section 9). Judged is the address
// itself, after name resolution, so that no name and no redirect leads to a machine's own metadata
// service. Pure.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dartfs::core {

// An IPv6 address in network order; an IPv4 address as its mapped form ::ffff:a.b.c.d.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  bool operator==(const IpAddress&) const = default;
  bool IsV4() const;
  std::string ToString() const;  // "10.0.0.1", "fe80::1"
};

// A URL's host that is an address: dotted quads and the older numeric forms that resolvers take
// ("2852039166", "0xa9.0376.43518"), IPv6 with or without brackets, a zone ignored. nullopt for a
// name.
std::optional<IpAddress> ParseIpLiteral(std::string_view host);
// nullopt for families other than AF_INET and AF_INET6.
std::optional<IpAddress> FromSockaddr(const sockaddr& address);

// A block of addresses. `prefix_bits` counts within IpAddress::bytes: 96 + n for an IPv4 /n.
struct Cidr {
  IpAddress address;
  int prefix_bits = 128;

  bool Contains(const IpAddress& other) const;
};
// "10.0.0.0/8", "fd00::/8", "10.1.2.3"; nullopt for anything else.
std::optional<Cidr> ParseCidr(std::string_view text);

struct AddressPolicyOptions {
  bool allow_link_local = false;  // lifts the refusals that are there by default
  std::vector<Cidr> deny;         // first word
  std::vector<Cidr> allow;        // second word: lifts a default refusal for these
};

class AddressPolicy final {
 public:
  explicit AddressPolicy(AddressPolicyOptions options = {});
  // kRefused, with a text that names the address, the reason and the option that lifts it. An IPv4
  // address inside an IPv6 one (mapped, compatible, translated, NAT64, 6to4) is judged as well.
  Status Check(const IpAddress& address) const;

 private:
  Status CheckOne(const IpAddress& address, const IpAddress& asked) const;
  const AddressPolicyOptions options_;
};

}  // namespace dartfs::core
