// FaultyDiskIo: a DiskIo that passes calls on to another one and misbehaves where told to: what a
// disk, or a power loss, does below the file system's promises. Thread-safe.
//
//   kDrop     a write reports success and changes nothing
//   kTear     a write reports success; only its first `torn_bytes` bytes reach the file
//   kFail     the call ends with `sys_errno`; writes change nothing
//   kHold     the call waits until Release
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/io/disk_io.h"

namespace dartfs::core {

struct DiskFault {
  enum class Kind { kNone, kDrop, kTear, kFail, kHold };
  Kind kind = Kind::kNone;
  size_t torn_bytes = 0;
  int sys_errno = EIO;
};

struct DiskCall {
  enum class Kind { kRead, kWrite, kSync };
  Kind kind = Kind::kRead;
  int fd = -1;
  uint64_t offset = 0;
  size_t bytes = 0;
};

class FaultyDiskIo final : public DiskIo {
 public:
  using Choose = std::function<DiskFault(const DiskCall&)>;

  explicit FaultyDiskIo(DiskIo& below) : below_(below) {}
  ~FaultyDiskIo() override { Release(); }

  // Asked at every call from now on, on the caller's thread and under a lock: must not call back.
  void SetChoose(Choose choose) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    choose_ = std::move(choose);
  }
  void Heal() EXCLUDES(mu_) { SetChoose(nullptr); }
  // Lets all held calls go on.
  void Release() EXCLUDES(mu_) {
    std::vector<UniqueFunction<void()>> held;
    {
      MutexLock lock(mu_);
      held.swap(held_);
    }
    for (auto& call : held) call();
  }
  size_t held() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return held_.size();
  }
  uint64_t calls(DiskCall::Kind kind) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return calls_[static_cast<size_t>(kind)];
  }

  void Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) override {
    const DiskFault fault = Note({DiskCall::Kind::kRead, fd, offset, into.size()});
    Act(fault, [this, fd, into, offset, done = std::move(done), fault]() mutable {
      if (fault.kind == DiskFault::Kind::kFail) return FailBelow(fd, fault, std::move(done));
      below_.Read(fd, into, offset, std::move(done));
    });
  }
  void Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) override {
    const DiskFault fault = Note({DiskCall::Kind::kWrite, fd, offset, from.size()});
    Act(fault, [this, fd, from, offset, done = std::move(done), fault]() mutable {
      switch (fault.kind) {
        case DiskFault::Kind::kFail:
          return FailBelow(fd, fault, std::move(done));
        case DiskFault::Kind::kDrop:
          return below_.Write(fd, from.first(0), offset, std::move(done));
        case DiskFault::Kind::kTear:
          return below_.Write(fd, from.first(TornBytes(fault, from.size())), offset,
                              std::move(done));
        default:
          return below_.Write(fd, from, offset, std::move(done));
      }
    });
  }
  void Sync(int fd, IoDone done) override {
    const DiskFault fault = Note({DiskCall::Kind::kSync, fd, 0, 0});
    Act(fault, [this, fd, done = std::move(done), fault]() mutable {
      if (fault.kind == DiskFault::Kind::kFail) return FailBelow(fd, fault, std::move(done));
      below_.Sync(fd, std::move(done));
    });
  }
  std::string Describe() const override { return "faulty " + below_.Describe(); }
  void Stop() override { Release(); }

 private:
  // Whole pages, as a descriptor opened with O_DIRECT takes no others.
  static size_t TornBytes(const DiskFault& fault, size_t bytes) {
    constexpr size_t kPage = 4096;
    const size_t torn = fault.torn_bytes < bytes ? fault.torn_bytes : bytes;
    return bytes % kPage == 0 ? torn / kPage * kPage : torn;
  }

  DiskFault Note(const DiskCall& call) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    ++calls_[static_cast<size_t>(call.kind)];
    return choose_ ? choose_(call) : DiskFault();
  }

  void Act(const DiskFault& fault, UniqueFunction<void()> call) EXCLUDES(mu_) {
    if (fault.kind == DiskFault::Kind::kHold) {
      MutexLock lock(mu_);
      held_.push_back(std::move(call));
      return;
    }
    call();
  }

  // An empty write below, so that the failure too comes from a thread of the DiskIo.
  void FailBelow(int fd, const DiskFault& fault, IoDone done) {
    static std::byte nothing{};
    below_.Write(fd, std::span<const std::byte>(&nothing, 0), 0,
                 [fault, done = std::move(done)](Status) mutable {
                   done(ErrnoError(fault.sys_errno, "injected"));
                 });
  }

  DiskIo& below_;
  Mutex mu_;
  Choose choose_ GUARDED_BY(mu_);
  std::vector<UniqueFunction<void()>> held_ GUARDED_BY(mu_);
  uint64_t calls_[3] GUARDED_BY(mu_) = {};
};

}  // namespace dartfs::core
