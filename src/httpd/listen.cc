#include "httpd/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/io/address_policy.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_UNIX) return true;
  const auto ip = core::FromSockaddr(address);
  if (!ip) return false;
  if (ip->IsV4()) return ip->bytes[12] == 127;
  core::IpAddress one;
  one.bytes[15] = 1;
  return *ip == one;
}

std::string Describe(const sockaddr_storage& address) {
  const auto& plain = reinterpret_cast<const sockaddr&>(address);
  if (plain.sa_family == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(address);
    return "unix:" + core::EscapeForeign(local.sun_path);
  }
  const auto ip = core::FromSockaddr(plain);
  const std::string text = ip ? ip->ToString() : "?";
  const auto port = std::to_string(
      ntohs(plain.sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(address).sin_port));
  return plain.sa_family == AF_INET6 ? "[" + text + "]:" + port : text + ":" + port;
}

uint16_t PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return 0;
}

// Fills in what the kernel has made of it.
Result<ListenSocket> Finish(core::UniqueFd fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return core::ErrnoError(errno, "asking for a socket's address");
  }
  ListenSocket made;
  made.fd = std::move(fd);
  made.address = Describe(address);
  made.port = PortOf(address);
  made.loopback = IsLoopback(reinterpret_cast<const sockaddr&>(address));
  return made;
}

Result<ListenSocket> BindOne(const addrinfo& where, const std::string& text) {
  core::UniqueFd fd(
      socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd.valid()) return core::ErrnoError(errno, "listening on " + text);
  const int one = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (where.ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  }
  if (bind(fd.get(), where.ai_addr, where.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    const char* const hint =
        error == EADDRINUSE ? " (another program has it: choose another port)" : "";
    return core::ErrnoError(error, "listening on " + text + hint);
  }
  return Finish(std::move(fd));
}

void SetPort(sockaddr& address, uint16_t port) {
  if (address.sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
}

}  // namespace

Result<HostPort> ParseHostPort(std::string_view text) {
  if (auto parts = core::SplitHostPort(text)) return std::move(*parts);
  return MakeError(Code::kInvalidArgument,
                   "'" + core::EscapeForeign(text) +
                       "' is no address to listen on: write host:port, such as 127.0.0.1:8145, "
                       "[::1]:8145, or :8145 for every address");
}

Result<std::vector<ListenSocket>> Listen(const HostPort& where) {
  const std::string text = where.host + ":" + std::to_string(where.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(where.host.empty() ? nullptr : where.host.c_str(),
                                 std::to_string(where.port).c_str(), &hints, &found);
  if (failed != 0) {
    return MakeError(Code::kInvalidArgument,
                     "listening on " + core::EscapeForeign(text) + ": " + gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  std::vector<ListenSocket> sockets;
  std::optional<core::Error> unavailable;
  for (addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    if (where.port == 0 && !sockets.empty()) SetPort(*at->ai_addr, sockets.front().port);
    auto made = BindOne(*at, text);
    if (made) {
      sockets.push_back(std::move(*made));
      continue;
    }
    // A machine without IPv6 still resolves localhost to ::1.
    const int error = made.error().sys_errno;
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) return std::move(made).error();
    unavailable = std::move(made).error();
  }
  if (sockets.empty()) {
    return unavailable ? *unavailable
                       : MakeError(Code::kInvalidArgument, "listening on " + text + ": no address");
  }
  return sockets;
}

Result<ListenSocket> AdoptListening(core::UniqueFd fd) {
  int listens = 0;
  socklen_t length = sizeof listens;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0) {
    return MakeError(Code::kInvalidArgument,
                     "a descriptor that was handed over is no listening socket (in the socket "
                     "unit: ListenStream=, Accept=no)");
  }
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return core::ErrnoError(errno, "taking over a listening socket");
  }
  return Finish(std::move(fd));
}

}  // namespace dartfs::httpd
