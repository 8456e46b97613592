// FakeEngine: an Engine whose opens the test scripts by URL, with a store that holds names alone.
//
//   FakeEngine engine(http, scheduler);
//   engine.AddFile("http://h/a.img", {.size = 7});
//   engine.Fail("http://h/b", Code::kForbidden);
//   ... code under test opens ...
//   engine.Opens("http://h/a.img");  // how often
//
// What is not scripted is kNotFound. Opens complete on the caller's stack, or, between Hold() and
// Release(), on Release's. Reads are not offered. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/engine/engine.h"

namespace dartfs::core {

// A Store with the two name tables and nothing else: any other use ends the test.
class FakeNameStore final : public Store {
 public:
  Result<std::shared_ptr<StoredObject>> OpenObject(const StoreKey&, const ObjectMeta&) override {
    return MakeError(Code::kUnsupported, "FakeNameStore holds names alone");
  }
  BlockPin Pin(const std::shared_ptr<StoredObject>&, uint64_t) override { return {}; }
  uint64_t PresentBlocks(const StoredObject&) override { return 0; }
  std::vector<bool> PresentMap(const StoredObject&) override { return {}; }
  bool TryRead(const BlockPin&, uint64_t, std::span<std::byte>) override { return false; }
  void Read(BlockPin, uint64_t, std::span<std::byte>, IoDone) override { DARTFS_CHECK(false); }
  void Write(std::shared_ptr<StoredObject>, uint64_t, std::shared_ptr<const AlignedBuffer>, IoDone,
             WriteOptions) override {
    DARTFS_CHECK(false);
  }
  Status DropObject(const std::shared_ptr<StoredObject>&) override { return {}; }
  Status Rekey(const std::shared_ptr<StoredObject>&, const StoreKey&, const ObjectMeta&) override {
    return {};
  }
  LendState Lendable(const StoredObject&) override { return LendState::kNotPossible; }
  Result<FileLoan> Lend(const std::shared_ptr<StoredObject>&) override {
    return MakeError(Code::kUnsupported, "fake");
  }
  Result<VerifyReport> Verify(const std::shared_ptr<StoredObject>&,
                              const std::function<bool()>&) override {
    return VerifyReport();
  }
  void TouchUse(const std::shared_ptr<StoredObject>&) override {}
  Result<uint64_t> Evict(const std::shared_ptr<StoredObject>&) override { return 0; }
  Status SetPinned(const std::shared_ptr<StoredObject>&, bool) override { return {}; }
  bool IsPinned(const StoredObject&) override { return false; }
  void SetBypass(bool) override {}
  void SetPlacement(const std::shared_ptr<StoredObject>&, uint64_t, Placement) override {}
  void PutName(NameTable table, std::string_view name, std::string_view value) override {
    MutexLock lock(mu_);
    names_[{table, std::string(name)}] = value;
    ++puts_;
  }
  std::optional<std::string> GetName(NameTable table, std::string_view name) override {
    MutexLock lock(mu_);
    const auto it = names_.find({table, std::string(name)});
    if (it == names_.end()) return std::nullopt;
    return it->second;
  }
  void DeleteName(NameTable table, std::string_view name) override {
    MutexLock lock(mu_);
    names_.erase({table, std::string(name)});
  }
  Status Flush() override { return {}; }
  StoreStats Stats() override {
    MutexLock lock(mu_);
    return stats_;
  }
  void SetStats(StoreStats stats) {
    MutexLock lock(mu_);
    stats_ = std::move(stats);
  }
  void Stop() override {}

  size_t puts() const {
    MutexLock lock(mu_);
    return puts_;
  }
  size_t names() const {
    MutexLock lock(mu_);
    return names_.size();
  }

 private:
  mutable Mutex mu_;  // leaf
  std::map<std::pair<NameTable, std::string>, std::string> names_ GUARDED_BY(mu_);
  size_t puts_ GUARDED_BY(mu_) = 0;
  StoreStats stats_ GUARDED_BY(mu_);
};

class FakeEngine final : public Engine {
 public:
  struct File {
    uint64_t size = 0;
    std::string version = "e:\"1\"";
    int64_t last_modified = -1;
    bool cached = false;  // OpenCached knows it
  };

  FakeEngine(HttpClient& http, Scheduler& scheduler) : http_(http), scheduler_(scheduler) {}

  // What the next open that revalidates finds.
  void OnRevalidate(const std::string& url, File file) {
    MutexLock lock(mu_);
    revalidated_.insert_or_assign(url, std::move(file));
  }
  void AddFile(const std::string& url, File file) {
    Object::Facts facts;
    facts.url = ParseUrl(url).value();
    facts.identity.local_id = url;
    facts.meta.size = file.size;
    facts.meta.version = file.version;
    facts.meta.last_modified = file.last_modified;
    auto object = std::make_shared<Object>(std::move(facts), nullptr, nullptr);
    MutexLock lock(mu_);
    outcomes_.insert_or_assign(url, Outcome{std::move(object), file.cached});
  }
  void Fail(const std::string& url, Code code) { Fail(url, MakeError(code, "scripted: " + url)); }
  void Fail(const std::string& url, Error error) {
    MutexLock lock(mu_);
    outcomes_.insert_or_assign(url, Outcome{std::move(error), false});
  }
  // For all URLs that are not scripted.
  void FailOthers(Code code) {
    MutexLock lock(mu_);
    others_ = code;
  }

  void SetStats(EngineStats stats) {
    MutexLock lock(mu_);
    stats_ = std::move(stats);
  }

  void Hold() {
    MutexLock lock(mu_);
    held_ = true;
  }
  // Answers what waits, oldest first; later opens complete at once.
  void Release() {
    std::vector<std::pair<std::string, OpenDone>> waiting;
    {
      MutexLock lock(mu_);
      held_ = false;
      waiting.swap(waiting_);
    }
    for (auto& [url, done] : waiting) done(OutcomeOf(url));
  }
  size_t waiting() const {
    MutexLock lock(mu_);
    return waiting_.size();
  }
  size_t Opens(const std::string& url) const {
    MutexLock lock(mu_);
    const auto it = opens_.find(url);
    return it == opens_.end() ? 0 : it->second;
  }
  size_t opens() const {
    MutexLock lock(mu_);
    size_t sum = 0;
    for (const auto& [url, count] : opens_) sum += count;
    return sum;
  }
  OpenOptions last_options() const {
    MutexLock lock(mu_);
    return last_options_;
  }

  void Open(const Url& url, OpenOptions options, OpenDone done) override {
    const std::string key = url.ToString();
    std::optional<File> newer;
    {
      MutexLock lock(mu_);
      ++opens_[key];
      const auto found = revalidated_.find(key);
      if (options.revalidate && found != revalidated_.end()) {
        newer = std::move(found->second);
        revalidated_.erase(found);
      }
    }
    if (newer) AddFile(key, std::move(*newer));
    {
      MutexLock lock(mu_);
      last_options_ = std::move(options);
      if (held_) {
        waiting_.emplace_back(key, std::move(done));
        return;
      }
    }
    done(OutcomeOf(key));
  }
  using Engine::OpenCached;
  std::optional<Result<std::shared_ptr<Object>>> OpenCached(const Url& url,
                                                            const CachedOpen&) override {
    MutexLock lock(mu_);
    const auto it = outcomes_.find(url.ToString());
    if (it == outcomes_.end() || !it->second.cached) return std::nullopt;
    return it->second.result;
  }
  std::unique_ptr<ObjectReader> MakeReader(std::shared_ptr<Object>, Requester) override {
    DARTFS_CHECK(false);
    return nullptr;
  }
  std::unique_ptr<Fill> StartFill(std::shared_ptr<Object>, Requester, FillDone) override {
    DARTFS_CHECK(false);
    return nullptr;
  }
  bool MayLend(const std::shared_ptr<Object>&) override { return false; }
  void Lend(const std::shared_ptr<Object>&, LendDone) override { DARTFS_CHECK(false); }
  Duration TtlLeft(const Url&) override { return Duration::zero(); }
  UrlReport Explain(const Url&, std::string_view) override { return {}; }
  EngineStats Stats() override {
    MutexLock lock(mu_);
    return stats_;
  }
  FakeNameStore& store() override { return store_; }
  HttpClient& http() override { return http_; }
  Scheduler& scheduler() override { return scheduler_; }
  void Stop() override {}

 private:
  struct Outcome {
    Result<std::shared_ptr<Object>> result;
    bool cached = false;
  };

  Result<std::shared_ptr<Object>> OutcomeOf(const std::string& url) const {
    MutexLock lock(mu_);
    const auto it = outcomes_.find(url);
    if (it == outcomes_.end()) return MakeError(others_, "not scripted: " + url);
    return it->second.result;
  }

  HttpClient& http_;
  Scheduler& scheduler_;
  FakeNameStore store_;
  mutable Mutex mu_;  // leaf
  std::map<std::string, Outcome> outcomes_ GUARDED_BY(mu_);
  Code others_ GUARDED_BY(mu_) = Code::kNotFound;
  std::map<std::string, size_t> opens_ GUARDED_BY(mu_);
  std::map<std::string, File> revalidated_ GUARDED_BY(mu_);
  OpenOptions last_options_ GUARDED_BY(mu_);
  EngineStats stats_ GUARDED_BY(mu_);
  std::vector<std::pair<std::string, OpenDone>> waiting_ GUARDED_BY(mu_);
  bool held_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
