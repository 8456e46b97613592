#include "core/io/curl_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

std::string EndsKey(const std::string& local_ip, int local_port, const std::string& peer_ip,
                    int peer_port) {
  return local_ip + '/' + std::to_string(local_port) + '>' + peer_ip + '/' +
         std::to_string(peer_port);
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

bool EndOf(int fd, NameFunction name, std::string* ip, int* port) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (name(fd, generic, &size) != 0) return false;
  // Also anything but libcurl's own: see Open.
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return false;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (getnameinfo(generic, size, host.data(), host.size(), service.data(), service.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return false;
  }
  *ip = host.data();
  *ip = ip->substr(0, ip->find('%'));  // libcurl leaves the zone out
  const std::optional<uint64_t> number = ParseUint(service.data());
  if (!number || *number > UINT16_MAX) return false;
  *port = static_cast<int>(*number);
  return true;
}

}  // namespace

// libcurl closes a socket that is not connected yet by itself, without a word: its number may
// belong to anybody by now, and comes again here when it is ours once more.
int CurlSockets::Open(int family, int type, int protocol) {
  const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return fd;
  std::erase(unnamed_, fd);
  unnamed_.push_back(fd);
  return fd;
}

int CurlSockets::Close(int fd) {
  std::erase(unnamed_, fd);
  if (const auto named = ends_of_.find(fd); named != ends_of_.end()) {
    by_ends_.erase(named->second);
    ends_of_.erase(named);
  }
  return close(fd);
}

bool CurlSockets::Unclean(const std::string& local_ip, int local_port, const std::string& peer_ip,
                          int peer_port) {
  const std::string ends = EndsKey(local_ip, local_port, peer_ip, peer_port);
  const auto known = by_ends_.find(ends);
  if (known == by_ends_.end()) {
    Name(ends);
    return false;
  }
  char byte;
  const ssize_t n = recv(known->second, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

// Only that one: another's first request is still to come, and TLS may have left bytes before it.
void CurlSockets::Name(const std::string& ends) {
  for (const int fd : unnamed_) {
    std::string local_ip;
    std::string peer_ip;
    int local_port = 0;
    int peer_port = 0;
    if (!EndOf(fd, getpeername, &peer_ip, &peer_port) ||
        !EndOf(fd, getsockname, &local_ip, &local_port) ||
        EndsKey(local_ip, local_port, peer_ip, peer_port) != ends) {
      continue;
    }
    by_ends_[ends] = fd;
    ends_of_[fd] = ends;
    std::erase(unnamed_, fd);
    return;
  }
}

}  // namespace dartfs::core
