// "host:port" as people and peers write it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dartfs::core {

struct HostPort {
  std::string host;  // without brackets; may be empty
  uint16_t port = 0;

  // With brackets around a v6 address.
  std::string ToString() const;
  bool operator==(const HostPort&) const = default;
};

// "127.0.0.1:8145", "[::1]:8145", ":8145", "localhost:0"; nullopt for anything else. A host is not
// looked at further: what it may be is the caller's affair.
std::optional<HostPort> SplitHostPort(std::string_view text);

}  // namespace dartfs::core
