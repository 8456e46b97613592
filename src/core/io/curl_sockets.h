// CurlSockets: the sockets under one transfer thread's connections, found by their addresses, so
// that a kept connection can be looked at before it is used again. libcurl 7.88 takes one whose
// last answer went on past its Content-Length, and reads the rest of it as the next answer's head.
#pragma once

#include <sys/socket.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace dartfs::core {

class CurlSockets final {
 public:
  // CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION: both create and close.
  int Open(int family, int type, int protocol);
  int Close(int fd);
  // Before a request goes out on the connection with these ends (numeric addresses): true when it
  // has been used before and has something to read, bytes or its end. Such a one must be closed.
  bool Unclean(const std::string& local_ip, int local_port, const std::string& peer_ip,
               int peer_port);

 private:
  void Name(const std::string& ends);

  std::vector<int> unnamed_;  // no request went over them yet
  std::unordered_map<std::string, int> by_ends_;
  std::unordered_map<int, std::string> ends_of_;
};

}  // namespace dartfs::core
