#include "fs/reply.h"

namespace dartfs::fs {

bool PendingReply::Claim() {
  core::UniqueFunction<void()> dropped;
  {
    core::MutexLock lock(mu_);
    if (state_ != State::kOpen) return false;
    state_ = State::kAnswered;
    dropped = std::move(hook_);
  }
  return true;
}

bool PendingReply::Fail(core::Error error) {
  core::UniqueFunction<void()> hook;
  {
    core::MutexLock lock(mu_);
    if (state_ != State::kOpen) return false;
    state_ = State::kFailed;
    hook = std::move(hook_);
  }
  SendError(std::move(error));
  if (hook) hook();
  return true;
}

void PendingReply::OnCancel(core::UniqueFunction<void()> hook) {
  {
    core::MutexLock lock(mu_);
    if (state_ == State::kOpen) hook_ = std::move(hook);
    if (state_ != State::kFailed) return;
  }
  hook();
}

}  // namespace dartfs::fs
