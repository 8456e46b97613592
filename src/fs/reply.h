// Reply: the answer that one request still owes. Move-only; dropped unanswered, it answers kIo.
// Answered at most once, by whoever comes first: the completion (Send), or an interrupt, deadline
// or stop (PendingReply::Fail). Any thread.
#pragma once

#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/unique_function.h"

namespace dartfs::fs {

// The part that does not depend on what is answered. Thread-safe.
class PendingReply {
 public:
  virtual ~PendingReply() = default;

  // Answers with `error` and then runs the cancel hook; false, doing nothing, when the answer has
  // been given already.
  bool Fail(core::Error error);

  // What ends the work behind this reply early. Runs at most once, on the thread of Fail, without
  // locks; at once when Fail came first; never when the answer came first. The hook is dropped
  // before the answer goes out, so that what it keeps alive is not kept beyond the request.
  void OnCancel(core::UniqueFunction<void()> hook) EXCLUDES(mu_);

 protected:
  // True for the one caller that may answer.
  bool Claim() EXCLUDES(mu_);
  virtual void SendError(core::Error error) = 0;

 private:
  enum class State { kOpen, kAnswered, kFailed };
  core::Mutex mu_;  // leaf
  State state_ GUARDED_BY(mu_) = State::kOpen;
  core::UniqueFunction<void()> hook_ GUARDED_BY(mu_);
};

template <typename T>
class ReplyState final : public PendingReply {
 public:
  // True: the requester has the answer; false: it has gone, and what the answer handed out must be
  // taken back.
  using Sink = core::UniqueFunction<bool(core::Result<T>)>;
  explicit ReplyState(Sink sink) : sink_(std::move(sink)) {}

  bool Send(core::Result<T> result) { return Claim() && sink_(std::move(result)); }

 private:
  void SendError(core::Error error) override { sink_(std::move(error)); }
  Sink sink_;  // used by the one that claimed
};

template <typename T>
class Reply {
 public:
  explicit Reply(std::shared_ptr<ReplyState<T>> state) : state_(std::move(state)) {}
  explicit Reply(typename ReplyState<T>::Sink sink)
      : state_(std::make_shared<ReplyState<T>>(std::move(sink))) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (state_) state_->Send(core::MakeError(core::Code::kIo, "request dropped unanswered"));
  }

  // Once. False when the requester will not see it (interrupted, gone).
  bool Send(core::Result<T> result) {
    const auto state = std::exchange(state_, nullptr);
    DARTFS_CHECK(state != nullptr);
    return state->Send(std::move(result));
  }

  // For the cancel hook. Not after Send.
  std::shared_ptr<PendingReply> pending() const { return state_; }

 private:
  std::shared_ptr<ReplyState<T>> state_;
};

}  // namespace dartfs::fs
