#include "fs/open_modes.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/engine/object.h"

namespace dartfs::fs {

using core::Result;

class OpenModes::Lending {
 public:
  Lending(OpenModes& modes, NodeId node, std::shared_ptr<core::Object> object,
          std::shared_ptr<BackingFiles> files)
      : modes_(&modes), node_(node), object_(std::move(object)), files_(std::move(files)) {}
  Lending(Lending&& other) noexcept
      : modes_(std::exchange(other.modes_, nullptr)),
        node_(other.node_),
        object_(std::move(other.object_)),
        files_(std::move(other.files_)) {}
  Lending& operator=(Lending&&) = delete;
  ~Lending() { Answer(core::MakeError(core::Code::kCancelled, "the engine is stopping")); }

  void Answer(Result<core::FileLoan> loan) {
    OpenModes* const modes = std::exchange(modes_, nullptr);
    if (modes != nullptr) modes->Decide(node_, *object_, std::move(files_), std::move(loan));
  }

 private:
  OpenModes* modes_;
  NodeId node_;
  std::shared_ptr<core::Object> object_;
  std::shared_ptr<BackingFiles> files_;
};

OpenModes::~OpenModes() = default;

void OpenModes::SetBacking(std::shared_ptr<BackingFiles> files) {
  std::vector<std::shared_ptr<BackingFiles>> dropped;  // outside the lock
  core::MutexLock lock(mu_);
  dropped.push_back(std::exchange(files_, std::move(files)));
  lends_.store(files_ != nullptr, std::memory_order_relaxed);
  if (files_ != nullptr) return;
  for (auto& [node, state] : states_) {
    if (state.backing) dropped.push_back(std::exchange(state.backing->files, nullptr));
  }
}

void OpenModes::Enter(NodeId node, std::shared_ptr<core::Object> object, Decided decided) {
  // Asked outside the lock, and even where the mode is decided already: it begins the check that
  // the next first open needs.
  const bool may_lend = lends_.load(std::memory_order_relaxed) && engine_.MayLend(object);
  std::shared_ptr<BackingFiles> files;
  std::optional<int32_t> id;
  bool broken = false;
  {
    core::MutexLock lock(mu_);
    State& state = states_[node];
    broken = state.backing && state.backing->loan.broken();
    if (!broken) ++state.opens;
    if (broken) {
      // Whoever has it open reads on what the kernel has.
    } else if (state.deciding) {
      state.waiting.push_back(std::move(decided));
      return;
    } else if (state.backing) {
      id = state.backing->id;
      passthrough_opens_.fetch_add(1, std::memory_order_relaxed);
    } else if (state.opens == 1 && may_lend && files_ != nullptr &&
               engine_.scheduler().clock().Now() >= not_before_) {
      files = files_;
      state.deciding = true;
      state.waiting.push_back(std::move(decided));
    }
  }
  if (broken) {
    return decided(core::MakeError(core::Code::kStale, "its cache file has been found damaged"));
  }
  if (files == nullptr) return decided(id);
  Lending lending(*this, node, object, std::move(files));
  engine_.Lend(object, [lending = std::move(lending)](Result<core::FileLoan> loan) mutable {
    lending.Answer(std::move(loan));
  });
}

void OpenModes::Decide(NodeId node, const core::Object& object, std::shared_ptr<BackingFiles> files,
                       Result<core::FileLoan> loan) {
  std::optional<Backing> backing = Register(object, std::move(files), std::move(loan));
  std::optional<int32_t> id;
  if (backing) id = backing->id;
  std::vector<Decided> waiting;
  {
    core::MutexLock lock(mu_);
    const auto found = states_.find(node);
    DARTFS_CHECK(found != states_.end() && found->second.deciding);
    State& state = found->second;
    state.deciding = false;
    // The session may have ended meanwhile, and with it what it had registered.
    if (backing && files_ == nullptr) backing->files = nullptr;
    state.backing = std::move(backing);
    waiting.swap(state.waiting);
    if (id) passthrough_opens_.fetch_add(waiting.size(), std::memory_order_relaxed);
  }
  // Nothing of this object is touched any more: the last of them may let it go.
  for (Decided& decided : waiting) decided(id);
}

std::optional<OpenModes::Backing> OpenModes::Register(const core::Object& object,
                                                      std::shared_ptr<BackingFiles> files,
                                                      Result<core::FileLoan> loan) {
  const std::string& url = object.facts().identity.redacted_url;
  if (!loan) {
    LOG_DEBUG("{}: read through the daemon: {}", url, loan.error().ToString());
    return std::nullopt;
  }
  const Result<int32_t> id = files->Register(loan->fd());
  if (id) {
    loan->CloseFd();
    return Backing{std::move(files), *id, std::move(*loan)};
  }
  bool told = false;
  {
    core::MutexLock lock(mu_);
    not_before_ = engine_.scheduler().clock().Now() + kAfterRefusal;
    told = std::exchange(refusal_told_, true);
  }
  if (!told) {
    LOG_WARN(
        "{}: the kernel does not take its cache file for passthrough, so it is read through "
        "the daemon: {}",
        url, id.error().context);
  }
  return std::nullopt;
}

void OpenModes::Leave(NodeId node) {
  std::optional<Backing> ended;
  {
    core::MutexLock lock(mu_);
    const auto found = states_.find(node);
    DARTFS_CHECK(found != states_.end() && found->second.opens > 0);
    if (--found->second.opens > 0) return;
    ended = std::move(found->second.backing);
    states_.erase(found);
  }
  End(std::move(ended));
}

void OpenModes::End(std::optional<Backing> backing) {
  if (backing && backing->files != nullptr) backing->files->Unregister(backing->id);
}

size_t OpenModes::nodes_in_passthrough() const {
  core::MutexLock lock(mu_);
  size_t count = 0;
  for (const auto& [node, state] : states_) count += state.backing ? 1 : 0;
  return count;
}

}  // namespace dartfs::fs
