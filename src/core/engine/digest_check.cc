#include "core/engine/digest_check.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/engine/digest_worker.h"

namespace dartfs::core {

namespace {

// Of one object before the worker looks at the next.
constexpr int kBlocksPerTurn = 8;
// Named in the log.
constexpr size_t kMaxSources = 8;
constexpr size_t kReadBytes = 256 * 1024;
constexpr Duration kStopLook = std::chrono::milliseconds(50);

// One read of the store, waited for. Outlives the waiter.
struct StoredRead {
  Mutex mu;
  CondVar wake;
  std::optional<Status> status GUARDED_BY(mu);
  std::shared_ptr<AlignedBuffer> bytes;
};

}  // namespace

DigestCheck::DigestCheck(FlightEnv& env, std::shared_ptr<StoredObject> stored, Identity identity,
                         std::optional<DigestRecord> known)
    : env_(env),
      held_(env.digests.held()),
      stored_(std::move(stored)),
      identity_(std::move(identity)),
      size_(MetaOf(*stored_).size),
      block_count_(env.options.grid.BlockCount(size_)),
      state_(known ? State::kVerified : State::kHashing),
      whole_(Digester::Create(identity_.digest->algorithm)) {
  MutexLock lock(mu_);
  record_.size = size_;
  record_.block_size = env.options.grid.block_size;
  if (!known) return;
  record_ = std::move(*known);
  next_ = block_count_;
}

DigestCheck::~DigestCheck() {
  MutexLock lock(mu_);
  ForgetOffered();
}

std::optional<Error> DigestCheck::Refusal() const {
  if (state_.load(std::memory_order_acquire) != State::kRefused) return std::nullopt;
  MutexLock lock(mu_);
  return refusal_;
}

Status DigestCheck::Admit(uint64_t block, const Bytes& bytes, const Identity& source) {
  std::optional<BlockDigest> known;
  {
    MutexLock lock(mu_);
    if (refusal_) return *refusal_;
    if (sources_.size() < kMaxSources) sources_.insert(source.redacted_url);
    if (block < next_) {
      known = record_.blocks[block];
    } else if (block == next_ && hashing_next_) {
      again_ = bytes;
    } else {
      // What was offered before is no longer what the store will hold.
      if (offered_.erase(block) > 0) held_->Release(bytes->size());
      if (held_->Hold(bytes->size())) offered_[block] = bytes;
    }
  }
  if (!known) {
    Wake();
    return {};
  }
  if (DigestOfBlock(bytes->span()) == *known) return {};
  const std::string what =
      "block " + std::to_string(block) + " of " + source.redacted_url + ": not the bytes of ";
  if (verified()) {
    return MakeError(Code::kBadResponse, what + identity_.digest->ToString());
  }
  MutexLock lock(mu_);
  Refuse("two answers differ in block " + std::to_string(block));
  return *refusal_;
}

void DigestCheck::Wake() {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::kVerified) return;
  const bool complete = env_.store.PresentBlocks(*stored_) == block_count_;
  MutexLock lock(mu_);
  const bool wanted = complete || next_ > 0 || offered_.count(next_) > 0 || refusal_;
  if (wanted && !dropped_) env_.digests.Enqueue(shared_from_this());
}

bool DigestCheck::Run() {
  for (int i = 0; i < kBlocksPerTurn; ++i) {
    if (env_.digests.stopped()) return false;
    if (state_.load(std::memory_order_acquire) == State::kRefused) DropRefused();
    if (state_.load(std::memory_order_acquire) != State::kHashing) return false;
    uint64_t block = 0;
    {
      MutexLock lock(mu_);
      block = next_;
      hashing_next_ = block < block_count_;
    }
    if (block == block_count_) {
      Conclude();
      continue;
    }
    BlockPin pin;  // until the block's digest is kept: what is hashed stays what is stored
    Bytes bytes = TakeOffered(block);
    if (bytes == nullptr) bytes = ReadStored(block, &pin);
    if (bytes != nullptr) {
      HashNext(bytes);
      continue;
    }
    MutexLock lock(mu_);
    hashing_next_ = false;
    if (again_ == nullptr) return false;
    if (!held_->Hold(again_->size())) {
      again_ = nullptr;  // it will be in the store
      return false;
    }
    offered_[block] = std::move(again_);
    again_ = nullptr;
  }
  return true;
}

DigestCheck::Bytes DigestCheck::TakeOffered(uint64_t block) {
  MutexLock lock(mu_);
  const auto it = offered_.find(block);
  if (it == offered_.end()) return nullptr;
  Bytes bytes = std::move(it->second);
  offered_.erase(it);
  held_->Release(bytes->size());
  return bytes;
}

DigestCheck::Bytes DigestCheck::ReadStored(uint64_t block, BlockPin* pin) {
  *pin = env_.store.Pin(stored_, block);
  if (!*pin) return nullptr;
  const auto length = static_cast<size_t>(env_.options.grid.BlockLength(size_, block));
  auto whole = std::make_shared<AlignedBuffer>(AlignedBuffer::Allocate(length));
  for (size_t at = 0; at < length; at += kReadBytes) {
    const auto into = whole->span().subspan(at, std::min(kReadBytes, length - at));
    if (env_.store.TryRead(*pin, at, into)) continue;
    auto read = std::make_shared<StoredRead>();
    read->bytes = whole;
    env_.store.Read(env_.store.Pin(stored_, block), at, into, [read](const Status& status) {
      MutexLock lock(read->mu);
      read->status = status;
      read->wake.NotifyAll();
    });
    MutexLock lock(read->mu);
    while (!read->status) {
      if (env_.digests.stopped()) return nullptr;
      read->wake.WaitFor(read->mu, kStopLook);
    }
    if (!*read->status) return nullptr;
  }
  return whole;
}

void DigestCheck::HashNext(const Bytes& bytes) {
  whole_->Update(bytes->span());
  const BlockDigest digest = DigestOfBlock(bytes->span());
  Bytes again;
  uint64_t block = 0;
  {
    MutexLock lock(mu_);
    block = next_++;
    hashing_next_ = false;
    record_.blocks.push_back(digest);
    again = std::move(again_);
    again_ = nullptr;
  }
  if (again == nullptr || DigestOfBlock(again->span()) == digest) return;
  MutexLock lock(mu_);
  Refuse("two answers differ in block " + std::to_string(block));
}

void DigestCheck::Conclude() {
  const std::string hex = whole_->FinishHex();
  if (hex != identity_.digest->hex) {
    MutexLock lock(mu_);
    Refuse("their digest is " + hex);
    return;
  }
  std::string record;
  {
    MutexLock lock(mu_);
    if (refusal_) return;
    state_.store(State::kVerified, std::memory_order_release);
    record = EncodeDigestRecord(record_);
  }
  LOG_DEBUG("{}: all bytes match {}", identity_.redacted_url, identity_.digest->ToString());
  const std::string name = DigestRecordName(*identity_.digest);
  env_.digests.File(name, [&] { File(name, record); });
}

void DigestCheck::File(const std::string& name, const std::string& record) {
  // Another origin's copy was sooner: that one is what is shared.
  if (env_.store.GetName(NameTable::kUrls, name)) return;
  ObjectMeta meta = MetaOf(*stored_);
  meta.id = NameOfObject(identity_, Trust::kVerified).id;
  meta.verified = true;
  const StoreKey key = MakeStoreKey(identity_, Version(), Trust::kVerified);
  const Status moved = env_.store.Rekey(stored_, key, meta);
  if (moved) {
    env_.store.PutName(NameTable::kUrls, name, record);
  } else {
    LOG_WARN("{} was verified but not filed as such: {}", identity_.redacted_url,
             moved.error().ToString());
  }
}

void DigestCheck::Refuse(const std::string& why) {
  if (refusal_) return;
  std::string sources;
  for (const std::string& url : sources_) sources += (sources.empty() ? "" : ", ") + url;
  if (sources.empty()) sources = identity_.redacted_url + " (cached before this start)";
  refusal_ = MakeError(Code::kCorrupt, "the bytes of " + sources + " are not those of " +
                                           identity_.digest->ToString() + ": " + why +
                                           "; what was cached of them is dropped");
  ForgetOffered();
  again_ = nullptr;
  state_.store(State::kRefused, std::memory_order_release);
  env_.digests.Enqueue(shared_from_this());
}

void DigestCheck::DropRefused() {
  Error error;
  {
    MutexLock lock(mu_);
    if (std::exchange(dropped_, true)) return;
    error = *refusal_;
  }
  LOG_ERROR("{}", error.ToString());
  env_.counters.wrong_digests.fetch_add(1, std::memory_order_relaxed);
  const Status dropped = env_.store.DropObject(stored_);
  if (!dropped) LOG_WARN("dropping a refused object: {}", dropped.error().ToString());
  env_.events.OnWrongDigest(*this, error);
}

void DigestCheck::ForgetOffered() {
  for (const auto& [block, bytes] : offered_) held_->Release(bytes->size());
  offered_.clear();
}

}  // namespace dartfs::core
