// What the origin was asked and what it sent: counters per path, and a bounded log.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "origin/http_text.h"

namespace dartfs::origin {

struct PathStats {
  std::uint64_t requests = 0;
  std::uint64_t ranged = 0;      // of these with a Range header
  std::uint64_t body_bytes = 0;  // handed to the kernel, without heads and chunk framing
  std::uint64_t active = 0;      // being answered now
  std::uint64_t max_active = 0;
  std::map<std::string, std::uint64_t> by_method;
  std::map<int, std::uint64_t> by_status;
};

struct Stats {
  PathStats total;
  std::map<std::string, PathStats> paths;  // by path as on the wire, without query
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_open = 0;
};

struct LoggedRequest {
  std::string method;
  std::string target;
  Headers headers;
  int status = 0;
  std::uint64_t connection = 0;  // number of its connection, from 1

  // The value of a request header; empty when there is none.
  std::string Header(std::string_view name) const;
};

// Thread-safe. Requests under /_ctl/ are not counted.
class StatsTable {
 public:
  struct Entry {
    PathStats stats;  // guarded by the table's lock, body_bytes not used
    std::atomic<std::uint64_t> body_bytes{0};
  };
  using EntryPtr = std::shared_ptr<Entry>;

  struct LogOptions {
    std::size_t limit = 0;   // requests kept
    bool to_stderr = false;  // a line for each, too
  };
  explicit StatsTable(LogOptions log) : log_options_(log) {}

  // A request whose answer has been decided; End() follows once, with the same entry.
  EntryPtr Begin(const Request& request, int status, std::uint64_t connection);
  void End(const EntryPtr& entry);
  // Relaxed counters only: called for every piece of a body.
  void AddBodyBytes(Entry& entry, std::uint64_t n);
  std::uint64_t ConnectionOpened();  // returns its number
  void ConnectionClosed();

  Stats Snapshot() const;
  // The counters of all paths that match the glob, added up (max_active: the largest).
  PathStats Sum(std::string_view glob) const;
  std::vector<LoggedRequest> Log() const;
  // Forgets counters and log, but not what is open or active.
  void Reset();

  // Blocks until the paths that match `glob` have had so many requests since the last Reset().
  // False: not before the time was up.
  bool WaitForRequests(std::string_view glob, std::uint64_t count,
                       std::chrono::milliseconds timeout) const;
  // The same for no more than so many open connections.
  bool WaitForOpenConnections(std::uint64_t at_most, std::chrono::milliseconds timeout) const;

 private:
  PathStats SumLocked(std::string_view glob) const;

  const LogOptions log_options_;
  std::atomic<std::uint64_t> total_body_bytes_{0};

  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  // Guarded by mu_.
  std::map<std::string, EntryPtr> entries_;
  PathStats total_;
  std::deque<LoggedRequest> log_;
  std::uint64_t accepted_ = 0;
  std::uint64_t numbered_ = 0;
  std::uint64_t open_ = 0;
};

}  // namespace dartfs::origin
