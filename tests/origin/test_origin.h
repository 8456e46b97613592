// The scripted HTTP origin of tests, benches and the quickstart. README.md lists what it can do.
//
//   auto origin = TestOrigin::Start();
//   origin->AddFile("/a.img", bytes);
//   origin->AddFault({.fault = Fault::kReset, .path = "/a.img", .times = 1, .after_bytes = 1000});
//   ... read origin->Url("/a.img") ...
//   EXPECT_EQ(origin->StatsOf("/a.img").requests, 2);
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "origin/behaviour.h"
#include "origin/content.h"
#include "origin/fault.h"
#include "origin/stats.h"

namespace dartfs::origin {

struct OriginOptions {
  std::string root = {};  // directory to serve; empty: only what is added
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  unsigned threads = 2;
  std::size_t log_limit = 4096;  // requests kept for Log(); 0: none
  bool log_to_stderr = false;    // a line for each request, too
  Behaviour behaviour = {};
};

// Runs from Start() to Stop() or destruction, on threads of its own. All functions are thread-safe
// (but Stop) and act on requests that arrive after they return; paths are URL paths as on the wire.
class TestOrigin {
 public:
  // Listens when it returns. null: it cannot, `error` says why; without `error` that is fatal.
  static std::unique_ptr<TestOrigin> Start(const OriginOptions& options = {},
                                           std::string* error = nullptr);
  ~TestOrigin();
  TestOrigin(const TestOrigin&) = delete;
  TestOrigin& operator=(const TestOrigin&) = delete;

  std::uint16_t port() const;
  std::string authority() const;  // "127.0.0.1:<port>"
  std::string Url(std::string_view path = "/") const;

  // Files in memory; see Content. Replacing one gives it new validators.
  void AddFile(std::string_view path, std::string bytes, FileOptions options = {});
  void AddGenerated(std::string_view path, std::uint64_t size, std::uint64_t seed,
                    FileOptions options = {});
  bool Remove(std::string_view path);
  void Alias(std::string_view path, std::string target);

  void SetFaults(std::vector<FaultRule> rules);
  void AddFault(FaultRule rule);
  void ClearFaults() { SetFaults({}); }
  // How often rule `index` (in the order of Set and Add) has fired.
  std::uint64_t Fired(std::size_t index) const;

  Behaviour behaviour() const;
  void SetBehaviour(const Behaviour& behaviour);

  // The origin is gone: connects are refused, connections are closed; it keeps its port.
  void GoAway();
  void ComeBack();
  void DropConnections();

  Stats GetStats() const;
  // The sum over all paths that match the glob.
  PathStats StatsOf(std::string_view glob) const;
  std::vector<LoggedRequest> Log() const;
  void ResetStats();
  // Block until it is so, or the time is up (false).
  bool WaitForRequests(std::string_view glob, std::uint64_t count,
                       std::chrono::milliseconds timeout = std::chrono::seconds(10)) const;
  bool WaitForOpenConnections(std::uint64_t at_most,
                              std::chrono::milliseconds timeout = std::chrono::seconds(10)) const;

  void Stop();

 private:
  struct Impl;
  explicit TestOrigin(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dartfs::origin
