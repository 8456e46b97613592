// A thin mutex with Clang's thread-safety annotations, and a condition variable that goes with it.
// The order in which locks may be taken stands where each Mutex is declared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DARTFS_TSA(x) __attribute__((x))
#else
#define DARTFS_TSA(x)
#endif
#define CAPABILITY(x) DARTFS_TSA(capability(x))
#define SCOPED_CAPABILITY DARTFS_TSA(scoped_lockable)
#define GUARDED_BY(x) DARTFS_TSA(guarded_by(x))
#define PT_GUARDED_BY(x) DARTFS_TSA(pt_guarded_by(x))
#define REQUIRES(...) DARTFS_TSA(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) DARTFS_TSA(acquire_capability(__VA_ARGS__))
#define RELEASE(...) DARTFS_TSA(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) DARTFS_TSA(try_acquire_capability(__VA_ARGS__))
#define EXCLUDES(...) DARTFS_TSA(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS DARTFS_TSA(no_thread_safety_analysis)

namespace dartfs::core {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() ACQUIRE() { mu_.lock(); }
  void Unlock() RELEASE() { mu_.unlock(); }
  bool TryLock() TRY_ACQUIRE(true) { return mu_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Spurious wake-ups happen: wait in a loop over the condition, with the lock held.
class CondVar {
 public:
  void Wait(Mutex& mu) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `timeout` ran out.
  bool WaitFor(Mutex& mu, std::chrono::nanoseconds timeout) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool woken = cv_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace dartfs::core
