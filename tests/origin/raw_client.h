// A blocking HTTP client that shows the bytes on the wire, for tests. Header only; it needs nothing
// but a port of 127.0.0.1. Every wait ends by a deadline (10 s), and reading then stops short.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dartfs::origin {

// The head is kept as it came, without its empty line.
struct RawResponse {
  int status = 0;  // 0: no answer
  std::string head;
  std::string body;

  // The value of the first header of that name (any case); empty when there is none.
  std::string Header(std::string_view name) const {
    const auto all = Headers(name);
    return all.empty() ? "" : all.front();
  }
  std::vector<std::string> Headers(std::string_view name) const {
    std::vector<std::string> out;
    for (std::size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at)) {
      at += 2;
      const std::string_view line = std::string_view(head).substr(at, head.find("\r\n", at) - at);
      if (line.size() > name.size() && line[name.size()] == ':' &&
          strncasecmp(line.data(), name.data(), name.size()) == 0) {
        const std::size_t value = line.find_first_not_of(' ', name.size() + 1);
        out.emplace_back(value == std::string_view::npos ? "" : line.substr(value));
      }
    }
    return out;
  }
};

class RawClient {
 public:
  enum class State { kOpen, kClosed, kReset };

  explicit RawClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
    if (!connected_) state_ = State::kReset;
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  // What the last read found; kOpen also after a deadline.
  State state() const { return state_; }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // `headers` is lines that each end in CRLF.
  bool Request(std::string_view method, std::string_view target, std::string_view headers = "",
               std::string_view body = "") {
    std::string text;
    text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: origin\r\n");
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return Send(text.append(headers).append("\r\n").append(body));
  }
  void FinishSending() { shutdown(fd_, SHUT_WR); }

  // One head; fewer bytes than a head when the connection ended.
  RawResponse ReadHead() {
    while (buffer_.find("\r\n\r\n") == std::string::npos && Fill(kDeadline)) {
    }
    RawResponse response;
    const std::size_t end = buffer_.find("\r\n\r\n");
    response.head = Take(end == std::string::npos ? buffer_.size() : end);
    if (end == std::string::npos) return response;
    Take(4);
    if (response.head.compare(0, 5, "HTTP/") == 0 && response.head.size() > 12) {
      response.status = std::atoi(response.head.c_str() + 9);
    }
    return response;
  }
  // Exactly `size` bytes, fewer when the connection ended.
  std::string Read(std::size_t size) {
    while (buffer_.size() < size && Fill(kDeadline)) {
    }
    return Take(std::min(size, buffer_.size()));
  }
  std::string ReadToEnd() {
    while (Fill(kDeadline)) {
    }
    return Take(buffer_.size());
  }
  // A head and as much body as its Content-Length says; to the end of the connection without one.
  RawResponse ReadResponse(bool head_only = false) {
    RawResponse response = ReadHead();
    if (head_only || response.status == 304 || response.status == 204 ||
        response.status / 100 == 1) {
      return response;
    }
    const std::string length = response.Header("Content-Length");
    response.body = length.empty() ? ReadToEnd() : Read(std::strtoull(length.c_str(), nullptr, 10));
    return response;
  }
  // True when no byte and no end arrives in that time.
  bool SilentFor(std::chrono::milliseconds time) {
    return buffer_.empty() && state_ == State::kOpen && !Fill(time) && state_ == State::kOpen;
  }

 private:
  static constexpr std::chrono::milliseconds kDeadline = std::chrono::seconds(10);

  // False: the end, or nothing in time.
  bool Fill(std::chrono::milliseconds time) {
    if (state_ != State::kOpen) return false;
    pollfd poll_fd{fd_, POLLIN, 0};
    if (poll(&poll_fd, 1, static_cast<int>(time.count())) <= 0) return false;
    std::string piece(65536, '\0');
    const ssize_t n = recv(fd_, piece.data(), piece.size(), 0);
    if (n > 0) buffer_.append(piece, 0, static_cast<std::size_t>(n));
    if (n == 0) state_ = State::kClosed;
    if (n < 0) state_ = State::kReset;
    return n > 0;
  }
  std::string Take(std::size_t size) {
    std::string out = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return out;
  }

  const int fd_;
  bool connected_ = false;
  State state_ = State::kOpen;
  std::string buffer_;
};

// One request on a connection of its own.
inline RawResponse Fetch(std::uint16_t port, std::string_view method, std::string_view target,
                         std::string_view headers = "", std::string_view body = "") {
  RawClient client(port);
  client.Request(method, target, headers, body);
  return client.ReadResponse(method == "HEAD");
}

inline RawResponse Get(std::uint16_t port, std::string_view target, std::string_view headers = "") {
  return Fetch(port, "GET", target, headers);
}

}  // namespace dartfs::origin
