#include "origin/test_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "origin/acceptor.h"
#include "origin/service.h"
#include "origin/worker.h"

namespace dartfs::origin {

struct TestOrigin::Impl {
  explicit Impl(const OriginOptions& options)
      : address(options.address),
        service(options.root, {options.log_limit, options.log_to_stderr}) {
    service.SetBehaviour(options.behaviour);
    service.SetHooks({[this](std::chrono::milliseconds time) { acceptor->GoAway(time); },
                      [this] { DropConnections(); }});
    for (unsigned i = 0; i < std::max(options.threads, 1U); ++i) {
      workers.push_back(std::make_unique<Worker>(service, fmt::format("origin-{}", i)));
    }
  }

  bool Listen(std::uint16_t port, std::string* error) {
    std::vector<Worker*> borrowed;
    for (const auto& worker : workers) borrowed.push_back(worker.get());
    acceptor = Acceptor::Create(address, port, std::move(borrowed), error);
    return acceptor != nullptr;
  }

  void DropConnections() {
    for (const auto& worker : workers) worker->CloseAll();
  }

  void Settle() {
    for (const auto& worker : workers) worker->Settle();
  }

  void Stop() {
    if (acceptor) acceptor->Stop();
    for (const auto& worker : workers) worker->Stop();
  }

  const std::string address;
  Service service;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<Acceptor> acceptor;
};

std::unique_ptr<TestOrigin> TestOrigin::Start(const OriginOptions& options, std::string* error) {
  std::string why;
  auto impl = std::make_unique<Impl>(options);
  if (!impl->service.content().ok()) {
    why = fmt::format("cannot open the directory {}", options.root);
  } else if (impl->Listen(options.port, &why)) {
    return std::unique_ptr<TestOrigin>(new TestOrigin(std::move(impl)));
  }
  if (error == nullptr) {
    std::fprintf(stderr, "test origin: %s\n", why.c_str());
    std::abort();
  }
  *error = why;
  return nullptr;
}

TestOrigin::TestOrigin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TestOrigin::~TestOrigin() { Stop(); }

void TestOrigin::Stop() { impl_->Stop(); }

std::uint16_t TestOrigin::port() const { return impl_->acceptor->port(); }

std::string TestOrigin::authority() const { return fmt::format("{}:{}", impl_->address, port()); }

std::string TestOrigin::Url(std::string_view path) const {
  return fmt::format("http://{}{}", authority(), path);
}

void TestOrigin::AddFile(std::string_view path, std::string bytes, FileOptions options) {
  impl_->service.content().AddFile(path, std::move(bytes), std::move(options));
}

void TestOrigin::AddGenerated(std::string_view path, std::uint64_t size, std::uint64_t seed,
                              FileOptions options) {
  impl_->service.content().AddGenerated(path, size, seed, std::move(options));
}

bool TestOrigin::Remove(std::string_view path) { return impl_->service.content().Remove(path); }

void TestOrigin::Alias(std::string_view path, std::string target) {
  impl_->service.content().Alias(path, std::move(target));
}

void TestOrigin::SetFaults(std::vector<FaultRule> rules) {
  impl_->service.faults().Set(std::move(rules));
}

void TestOrigin::AddFault(FaultRule rule) { impl_->service.faults().Add(std::move(rule)); }

std::uint64_t TestOrigin::Fired(std::size_t index) const {
  const auto rules = impl_->service.faults().List();
  return index < rules.size() ? rules[index].fired : 0;
}

Behaviour TestOrigin::behaviour() const { return impl_->service.behaviour(); }

void TestOrigin::SetBehaviour(const Behaviour& behaviour) {
  impl_->service.SetBehaviour(behaviour);
}

void TestOrigin::GoAway() {
  impl_->acceptor->GoAway(std::nullopt);
  impl_->Settle();
}

void TestOrigin::ComeBack() {
  if (impl_->acceptor->ComeBack()) return;
  std::fprintf(stderr, "test origin: cannot listen on port %u again\n", port());
  std::abort();
}

void TestOrigin::DropConnections() {
  impl_->DropConnections();
  impl_->Settle();
}

Stats TestOrigin::GetStats() const { return impl_->service.stats().Snapshot(); }

PathStats TestOrigin::StatsOf(std::string_view glob) const {
  return impl_->service.stats().Sum(glob);
}

std::vector<LoggedRequest> TestOrigin::Log() const { return impl_->service.stats().Log(); }

void TestOrigin::ResetStats() { impl_->service.stats().Reset(); }

bool TestOrigin::WaitForRequests(std::string_view glob, std::uint64_t count,
                                 std::chrono::milliseconds timeout) const {
  return impl_->service.stats().WaitForRequests(glob, count, timeout);
}

bool TestOrigin::WaitForOpenConnections(std::uint64_t at_most,
                                        std::chrono::milliseconds timeout) const {
  return impl_->service.stats().WaitForOpenConnections(at_most, timeout);
}

}  // namespace dartfs::origin
