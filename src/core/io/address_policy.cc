#include "core/io/address_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr size_t kV4Offset = 12;

IpAddress FromV4Bytes(const uint8_t* four) {
  IpAddress address;
  address.bytes[10] = 0xff;
  address.bytes[11] = 0xff;
  std::copy_n(four, 4, address.bytes.begin() + kV4Offset);
  return address;
}

bool HasPrefix(const IpAddress& address, const char* prefix, int bits) {
  Cidr cidr;
  in6_addr parsed;
  if (inet_pton(AF_INET6, prefix, &parsed) != 1) return false;
  std::memcpy(cidr.address.bytes.data(), &parsed, cidr.address.bytes.size());
  cidr.prefix_bits = bits;
  return cidr.Contains(address);
}

// Where an IPv6 address may carry an IPv4 one, and at which byte.
struct Embedding {
  const char* prefix;
  int bits;
  size_t offset;
};
constexpr Embedding kEmbeddings[] = {
    {"::", 96, kV4Offset},            // IPv4-compatible, RFC 4291 section 2.5.5.1
    {"::ffff:0:0:0", 96, kV4Offset},  // IPv4-translated, RFC 2765 section 2.1
    {"64:ff9b::", 96, kV4Offset},     // NAT64, RFC 6052 section 2.1
    {"64:ff9b:1::", 48, kV4Offset},   // NAT64 for local use, RFC 8215
    {"2002::", 16, 2},                // 6to4, RFC 3056 section 2
};

struct Refusal {
  const char* cidr;
  const char* why;
};
constexpr Refusal kDefaultRefusals[] = {
    {"169.254.0.0/16", "link-local"},
    {"fe80::/10", "link-local"},
    {"fd00:ec2::254", "a cloud metadata service"},
    {"100.100.100.200", "a cloud metadata service"},
    {"168.63.129.16", "a cloud metadata service"},
};

const char* DefaultRefusal(const IpAddress& address) {
  static const auto* const kParsed = [] {
    auto* list = new std::vector<std::pair<Cidr, const char*>>;
    for (const Refusal& refusal : kDefaultRefusals) {
      const auto cidr = ParseCidr(refusal.cidr);
      DARTFS_CHECK(cidr.has_value());
      list->emplace_back(*cidr, refusal.why);
    }
    return list;
  }();
  for (const auto& [cidr, why] : *kParsed) {
    if (cidr.Contains(address)) return why;
  }
  return nullptr;
}

bool AnyContains(const std::vector<Cidr>& list, const IpAddress& address) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Cidr& cidr) { return cidr.Contains(address); });
}

}  // namespace

bool IpAddress::IsV4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](uint8_t b) { return b == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

std::string IpAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (IsV4()) {
    inet_ntop(AF_INET, bytes.data() + kV4Offset, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  }
  return text;
}

std::optional<IpAddress> ParseIpLiteral(std::string_view host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::string text(host.substr(0, host.find('%')));
  in6_addr v6;
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    IpAddress address;
    std::memcpy(address.bytes.data(), &v6, address.bytes.size());
    return address;
  }
  if (text.size() > 1 && text.back() == '.') text.pop_back();
  // inet_aton also takes what follows a blank; a host has none.
  in_addr v4;
  if (text.find_first_of(" \t\r\n\v\f") != std::string::npos) return std::nullopt;
  if (inet_aton(text.c_str(), &v4) == 0) return std::nullopt;
  uint8_t four[4];
  std::memcpy(four, &v4, sizeof(four));
  return FromV4Bytes(four);
}

std::optional<IpAddress> FromSockaddr(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    uint8_t four[4];
    std::memcpy(four, &v4.sin_addr, sizeof(four));
    return FromV4Bytes(four);
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    IpAddress result;
    std::memcpy(result.bytes.data(), &v6.sin6_addr, result.bytes.size());
    return result;
  }
  return std::nullopt;
}

bool Cidr::Contains(const IpAddress& other) const {
  for (int bit = 0; bit < prefix_bits; bit += 8) {
    const auto i = static_cast<size_t>(bit / 8);
    const int used = std::min(8, prefix_bits - bit);
    const auto mask = static_cast<uint8_t>(0xff << (8 - used));
    if ((address.bytes[i] & mask) != (other.bytes[i] & mask)) return false;
  }
  return true;
}

std::optional<Cidr> ParseCidr(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string host(text.substr(0, slash));
  Cidr cidr;
  in6_addr v6;
  in_addr v4;
  int whole = 128;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    std::memcpy(cidr.address.bytes.data(), &v6, cidr.address.bytes.size());
  } else if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    uint8_t four[4];
    std::memcpy(four, &v4, sizeof(four));
    cidr.address = FromV4Bytes(four);
    whole = 32;
  } else {
    return std::nullopt;
  }
  if (slash == std::string_view::npos) return cidr;
  const auto bits = ParseUint(text.substr(slash + 1));
  if (!bits || *bits > static_cast<uint64_t>(whole)) return std::nullopt;
  cidr.prefix_bits = 128 - whole + static_cast<int>(*bits);
  return cidr;
}

AddressPolicy::AddressPolicy(AddressPolicyOptions options) : options_(std::move(options)) {}

Status AddressPolicy::Check(const IpAddress& address) const {
  TRY(CheckOne(address, address));
  if (address.IsV4()) return {};
  for (const Embedding& form : kEmbeddings) {
    if (!HasPrefix(address, form.prefix, form.bits)) continue;
    TRY(CheckOne(FromV4Bytes(address.bytes.data() + form.offset), address));
  }
  return {};
}

Status AddressPolicy::CheckOne(const IpAddress& address, const IpAddress& asked) const {
  std::string name = "address " + asked.ToString();
  if (!(address == asked)) name += " (that is " + address.ToString() + ")";
  if (AnyContains(options_.deny, address)) {
    return MakeError(Code::kRefused, name + " is denied by --origin-deny");
  }
  if (options_.allow_link_local || AnyContains(options_.allow, address)) return {};
  const char* why = DefaultRefusal(address);
  if (why == nullptr) return {};
  return MakeError(Code::kRefused,
                   name + " is " + why + " and refused by default; --allow-link-local lifts this");
}

}  // namespace dartfs::core
