// UniqueFunction<R(Args...)>: a move-only callable (std::move_only_function is C++23). Empty after
// a move. Completions use it: call once, then drop.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/base/check.h"

namespace dartfs::core {

template <typename Signature>
class UniqueFunction;

template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT
  template <typename F,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, UniqueFunction>>>
  UniqueFunction(F&& f)  // NOLINT
      : target_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(f))) {}

  explicit operator bool() const { return target_ != nullptr; }
  R operator()(Args... args) {
    DARTFS_CHECK(target_ != nullptr);
    return target_->Call(std::forward<Args>(args)...);
  }

 private:
  struct Target {
    virtual ~Target() = default;
    virtual R Call(Args... args) = 0;
  };
  template <typename F>
  struct Holder final : Target {
    explicit Holder(F f) : fn(std::move(f)) {}
    R Call(Args... args) override { return fn(std::forward<Args>(args)...); }
    F fn;
  };
  std::unique_ptr<Target> target_;
};

}  // namespace dartfs::core
