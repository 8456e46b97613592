// Listening sockets: bound by address, or taken over from whoever started this process
// (sd_listen_fds(3)'s protocol is the caller's affair). Blocking only as name resolution of a host
// name may be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/io/host_port.h"

namespace dartfs::httpd {

using core::HostPort;  // no host: every address

// "127.0.0.1:8145", "[::1]:8145", ":8145", "localhost:0". kInvalidArgument.
core::Result<HostPort> ParseHostPort(std::string_view text);

struct ListenSocket {
  core::UniqueFd fd;
  std::string address;    // "127.0.0.1:8145", as bound; "unix:/run/x" for a local socket
  uint16_t port = 0;      // 0: not TCP
  bool loopback = false;  // only this machine can connect
};

// Every address the host has is bound, to one port where 0 is asked for. A port that is taken is
// an error, even by a socket that could be shared.
core::Result<std::vector<ListenSocket>> Listen(const HostPort& where);
// What a descriptor that listens already is. kInvalidArgument where it does not listen.
core::Result<ListenSocket> AdoptListening(core::UniqueFd fd);

}  // namespace dartfs::httpd
