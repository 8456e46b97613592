// UniqueFunction<R(Args...)>: a move-only callable (std::move_only_function is C++23). Empty after
// a move. Completions use it: call once, then drop. A callable of up to six words lies within, a
// larger one on the heap.
#pragma once

#include <array>
#include <cstddef>
#include <new>
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
  UniqueFunction(F&& f) {  // NOLINT
    using Target = std::decay_t<F>;
    if constexpr (kFits<Target>) {
      new (place()) Target(std::forward<F>(f));
      methods_ = &Within<Target>::kMethods;
    } else {
      new (place()) Target*(new Target(std::forward<F>(f)));
      methods_ = &OnHeap<Target>::kMethods;
    }
  }
  UniqueFunction(UniqueFunction&& other) noexcept { Take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    // The old target goes last: its destructor may come back here.
    UniqueFunction old(std::move(*this));
    Take(other);
    return *this;
  }
  ~UniqueFunction() {
    if (methods_ != nullptr) methods_->destroy(place());
  }

  explicit operator bool() const { return methods_ != nullptr; }
  R operator()(Args... args) {
    DARTFS_CHECK(methods_ != nullptr);
    return methods_->call(place(), std::forward<Args>(args)...);
  }

 private:
  static constexpr size_t kBytes = 6 * sizeof(void*);
  template <typename F>
  static constexpr bool kFits =
      sizeof(F) <= kBytes &&  // NOLINT(misc-redundant-expression): not for every F
      alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  struct Methods {
    R (*call)(void* target, Args&&... args);
    void (*move)(void* from, void* to) noexcept;  // and destroys what is left at `from`
    void (*destroy)(void* target) noexcept;
  };
  template <typename F>
  struct Within {
    static F& Of(void* place) { return *std::launder(static_cast<F*>(place)); }
    static constexpr Methods kMethods = {
        [](void* target, Args&&... args) -> R { return Of(target)(std::forward<Args>(args)...); },
        [](void* from, void* to) noexcept {
          new (to) F(std::move(Of(from)));
          Of(from).~F();
        },
        [](void* target) noexcept { Of(target).~F(); }};
  };
  template <typename F>
  struct OnHeap {
    static F*& Of(void* place) { return *std::launder(static_cast<F**>(place)); }
    static constexpr Methods kMethods = {
        [](void* target, Args&&... args) -> R {
          return (*Of(target))(std::forward<Args>(args)...);
        },
        [](void* from, void* to) noexcept { new (to) F*(Of(from)); },
        [](void* target) noexcept { delete Of(target); }};
  };

  void* place() { return bytes_.data(); }
  void Take(UniqueFunction& other) noexcept {
    methods_ = std::exchange(other.methods_, nullptr);
    if (methods_ != nullptr) methods_->move(other.place(), place());
  }

  const Methods* methods_ = nullptr;
  alignas(std::max_align_t) std::array<std::byte, kBytes> bytes_;
};

}  // namespace dartfs::core
