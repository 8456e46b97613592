// MemoryEngine and MemoryNamespace: a tree of files in memory in place of origin, store and engine,
// for tests of the file system. Lookups and reads can be held back, and answered later or never.
// Thread-safe.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/base/unique_fd.h"
#include "core/engine/engine.h"
#include "fs/namespace.h"

namespace dartfs::fs {

// The byte at `offset` of a file with that seed.
inline std::byte PatternByte(uint64_t seed, uint64_t offset) {
  return static_cast<std::byte>((seed * 89 + offset * 131 + (offset >> 12) * 7) & 0xFF);
}
inline std::string Pattern(uint64_t seed, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(PatternByte(seed, offset + i));
  return text;
}

// A door that calls pass or wait behind.
class Gate {
 public:
  void Close() { Set(false); }
  // Runs what waits, on the caller's stack.
  void Open() {
    std::map<uint64_t, core::UniqueFunction<void(bool)>> waiting;
    {
      std::lock_guard lock(mu_);
      open_ = true;
      waiting.swap(waiting_);
    }
    for (auto& [id, call] : waiting) call(true);
  }
  // Runs `call(true)` now or when the gate opens; `call(false)` if it is cancelled before.
  uint64_t Pass(core::UniqueFunction<void(bool)> call) {
    {
      std::lock_guard lock(mu_);
      if (!open_) {
        waiting_.emplace(++last_, std::move(call));
        changed_.notify_all();
        return last_;
      }
    }
    call(true);
    return 0;
  }
  void Cancel(uint64_t id) {
    core::UniqueFunction<void(bool)> call;
    {
      std::lock_guard lock(mu_);
      const auto found = waiting_.find(id);
      if (found == waiting_.end()) return;
      call = std::move(found->second);
      waiting_.erase(found);
    }
    call(false);
  }
  void CancelAll() {
    std::map<uint64_t, core::UniqueFunction<void(bool)>> waiting;
    {
      std::lock_guard lock(mu_);
      waiting.swap(waiting_);
    }
    for (auto& [id, call] : waiting) call(false);
  }
  bool is_open() {
    std::lock_guard lock(mu_);
    return open_;
  }
  size_t waiting() {
    std::lock_guard lock(mu_);
    return waiting_.size();
  }
  // False when fewer wait after ten seconds.
  bool AwaitWaiting(size_t count) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return waiting_.size() >= count; });
  }

 private:
  void Set(bool open) {
    std::lock_guard lock(mu_);
    open_ = open;
  }
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = true;
  uint64_t last_ = 0;
  std::map<uint64_t, core::UniqueFunction<void(bool)>> waiting_;
};

struct MemoryFile {
  uint64_t size = 0;
  uint64_t seed = 0;
  std::string version = "e:\"1\"";
  int64_t last_modified = 1600000000;
  bool volatile_version = false;
};

class MemoryStore final : public core::Store {
 public:
  core::Result<std::shared_ptr<core::StoredObject>> OpenObject(const core::StoreKey&,
                                                               const core::ObjectMeta&) override {
    return Unsupported();
  }
  core::BlockPin Pin(const std::shared_ptr<core::StoredObject>&, uint64_t) override { return {}; }
  uint64_t PresentBlocks(const core::StoredObject&) override { return 0; }
  std::vector<bool> PresentMap(const core::StoredObject&) override { return {}; }
  bool TryRead(const core::BlockPin&, uint64_t, std::span<std::byte>) override { return false; }
  void Read(core::BlockPin, uint64_t, std::span<std::byte>, core::IoDone done) override {
    done(Unsupported());
  }
  void Write(std::shared_ptr<core::StoredObject>, uint64_t,
             std::shared_ptr<const core::AlignedBuffer>, core::IoDone done,
             core::WriteOptions) override {
    done(Unsupported());
  }
  core::Status DropObject(const std::shared_ptr<core::StoredObject>&) override {
    return Unsupported();
  }
  core::Status Rekey(const std::shared_ptr<core::StoredObject>&, const core::StoreKey&,
                     const core::ObjectMeta&) override {
    return Unsupported();
  }
  core::LendState Lendable(const core::StoredObject&) override {
    return core::LendState::kNotPossible;
  }
  core::Result<core::FileLoan> Lend(const std::shared_ptr<core::StoredObject>&) override {
    return core::MakeError(core::Code::kUnsupported, "fake");
  }
  core::Result<core::VerifyReport> Verify(const std::shared_ptr<core::StoredObject>&,
                                          const std::function<bool()>&) override {
    return core::VerifyReport();
  }
  void TouchUse(const std::shared_ptr<core::StoredObject>&) override {}
  core::Result<uint64_t> Evict(const std::shared_ptr<core::StoredObject>&) override { return 0; }
  core::Status SetPinned(const std::shared_ptr<core::StoredObject>&, bool) override { return {}; }
  bool IsPinned(const core::StoredObject&) override { return false; }
  void SetBypass(bool) override {}
  void SetPlacement(const std::shared_ptr<core::StoredObject>&, uint64_t,
                    core::Placement) override {}
  void PutName(core::NameTable, std::string_view, std::string_view) override {}
  std::optional<std::string> GetName(core::NameTable, std::string_view) override { return {}; }
  void DeleteName(core::NameTable, std::string_view) override {}
  core::Status Flush() override { return {}; }
  core::StoreStats Stats() override {
    core::StoreStats stats;
    stats.limit_bytes = uint64_t{10} << 30;
    stats.used_bytes = uint64_t{1} << 30;
    return stats;
  }
  void Stop() override {}

 private:
  static core::Error Unsupported() { return core::MakeError(core::Code::kUnsupported, "fake"); }
};

class MemoryEngine final : public core::Engine {
 public:
  explicit MemoryEngine(core::Scheduler& scheduler) : scheduler_(scheduler) {}
  ~MemoryEngine() override { Stop(); }

  // The file's URL gets these bytes; a former version is superseded. `opened`: known without a
  // request.
  std::shared_ptr<core::Object> Put(const core::Url& url, const MemoryFile& file,
                                    bool opened = false) {
    core::Object::Facts facts;
    facts.url = url;
    facts.meta.id = url.ToString();
    facts.meta.version = file.version;
    facts.meta.size = file.size;
    facts.meta.last_modified = file.last_modified;
    facts.meta.volatile_version = file.volatile_version;
    std::array<std::byte, core::StoreKey::kBytes> key{};
    const uint64_t hash = core::Xxh3(url.ToString() + "|" + file.version);
    std::memcpy(key.data(), &hash, sizeof hash);
    facts.key = core::StoreKey(key);
    auto object = std::make_shared<core::Object>(std::move(facts), nullptr, nullptr);
    std::lock_guard lock(mu_);
    Known& known = known_[url.ToString()];
    if (known.object) known.object->MarkSuperseded();
    known = Known{object, opened};
    seeds_[object.get()] = file.seed;
    keep_.push_back(object);
    return object;
  }
  std::shared_ptr<core::Object> Current(const core::Url& url) {
    std::lock_guard lock(mu_);
    const auto found = known_.find(url.ToString());
    return found == known_.end() ? nullptr : found->second.object;
  }

  void Open(const core::Url& url, core::OpenOptions, core::OpenDone done) override {
    auto object = Current(url);
    if (object) return done(std::move(object));
    done(core::MakeError(core::Code::kNotFound, "no such file"));
  }
  using core::Engine::OpenCached;
  std::optional<core::Result<std::shared_ptr<core::Object>>> OpenCached(
      const core::Url& url, const core::CachedOpen&) override {
    std::lock_guard lock(mu_);
    const auto found = known_.find(url.ToString());
    if (found == known_.end() || !found->second.opened) return std::nullopt;
    return core::Result<std::shared_ptr<core::Object>>(found->second.object);
  }
  std::unique_ptr<core::ObjectReader> MakeReader(std::shared_ptr<core::Object> object,
                                                 core::Requester requester) override;
  std::unique_ptr<core::Fill> StartFill(std::shared_ptr<core::Object>, core::Requester,
                                        core::FillDone) override {
    core::CheckFailed(__FILE__, __LINE__, "no filling in these tests");
  }
  bool MayLend(const std::shared_ptr<core::Object>&) override {
    ++lend_questions;
    return lends;
  }
  void Lend(const std::shared_ptr<core::Object>& object, core::LendDone done) override {
    lendings.Pass([this, object, done = std::move(done)](bool passed) mutable {
      if (!passed) return;
      if (!lends) return done(core::MakeError(core::Code::kBusy, "not lent"));
      done(core::FileLoan(
          CopyOf(*object), [this] { --loans; }, broken));
    });
  }
  core::Duration TtlLeft(const core::Url&) override {
    return std::chrono::milliseconds(ttl_left_ms);
  }
  core::UrlReport Explain(const core::Url&, std::string_view) override { return {}; }
  core::EngineStats Stats() override { return {}; }
  core::Store& store() override { return store_; }
  core::HttpClient& http() override {
    core::CheckFailed(__FILE__, __LINE__, "no HTTP in these tests");
  }
  core::Scheduler& scheduler() override { return scheduler_; }
  void Stop() override {
    reads.CancelAll();
    lendings.CancelAll();
  }

  uint64_t SeedOf(const core::Object* object) {
    std::lock_guard lock(mu_);
    return seeds_.at(object);
  }

  Gate reads;                          // of Read
  Gate lendings;                       // of Lend
  std::atomic<bool> lends{false};      // files may be lent
  std::atomic<int> lend_questions{0};  // calls of MayLend, each of which may begin a check
  std::atomic<int> loans{0};           // that have not ended
  // Of all files lent: they have been found damaged.
  const std::shared_ptr<std::atomic<bool>> broken = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> in_memory{true};  // TryRead succeeds
  std::atomic<int64_t> ttl_left_ms{60000};
  std::atomic<int> readers{0};    // alive
  std::atomic<int> lowered{0};    // calls of LowerInterest
  std::atomic<int> cancelled{0};  // reads that Cancel ended

 private:
  struct Known {
    std::shared_ptr<core::Object> object;
    bool opened = false;
  };

  core::UniqueFd CopyOf(const core::Object& object) {
    ++loans;
    core::UniqueFd fd(memfd_create("backing", MFD_CLOEXEC));
    const std::string bytes = Pattern(SeedOf(&object), 0, object.size());
    DARTFS_CHECK(write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  core::Scheduler& scheduler_;
  MemoryStore store_;
  std::mutex mu_;
  std::map<std::string, Known> known_;
  std::map<const core::Object*, uint64_t> seeds_;
  std::vector<std::shared_ptr<core::Object>> keep_;  // addresses stay unique
};

class MemoryReader final : public core::ObjectReader {
 public:
  MemoryReader(MemoryEngine& engine, std::shared_ptr<core::Object> object)
      : engine_(engine), object_(std::move(object)), seed_(engine.SeedOf(object_.get())) {
    ++engine_.readers;
  }
  ~MemoryReader() override {
    for (const uint64_t id : outstanding_) engine_.reads.Cancel(id);
    --engine_.readers;
  }
  const std::shared_ptr<core::Object>& object() const override { return object_; }
  std::optional<core::ReadBytes> TryRead(uint64_t offset, std::span<std::byte> into) override {
    if (!engine_.in_memory) return std::nullopt;
    DARTFS_CHECK(offset + into.size() <= object_->size());
    const std::string bytes = Pattern(seed_, offset, into.size());
    std::memcpy(into.data(), bytes.data(), bytes.size());
    return core::ReadBytes{into, nullptr};
  }
  core::ReadId Read(uint64_t offset, size_t size, core::TimePoint, core::ReadDone done) override {
    const uint64_t id = engine_.reads.Pass([&engine = engine_, seed = seed_, offset, size,
                                            done = std::move(done)](bool passed) mutable {
      if (!passed) {
        ++engine.cancelled;
        return done(core::MakeError(core::Code::kCancelled, "cancelled"));
      }
      const auto bytes = std::make_shared<std::string>(Pattern(seed, offset, size));
      done(core::ReadBytes{std::as_bytes(std::span(bytes->data(), bytes->size())), bytes});
    });
    std::lock_guard lock(mu_);
    outstanding_.push_back(id);
    return id;
  }
  void Cancel(core::ReadId id) override { engine_.reads.Cancel(id); }
  void LowerInterest() override { ++engine_.lowered; }

 private:
  MemoryEngine& engine_;
  const std::shared_ptr<core::Object> object_;
  const uint64_t seed_;
  std::mutex mu_;
  std::vector<uint64_t> outstanding_;
};

inline std::unique_ptr<core::ObjectReader> MemoryEngine::MakeReader(
    std::shared_ptr<core::Object> object, core::Requester) {
  return std::make_unique<MemoryReader>(*this, std::move(object));
}

// Directories have keys "/", "/sub/", ...; URLs are http://h<path>.
class MemoryNamespace final : public Namespace {
 public:
  explicit MemoryNamespace(MemoryEngine& engine) : engine_(engine) { dirs_["/"]; }

  void AddDir(const std::string& path) {  // "/sub/"
    std::lock_guard lock(mu_);
    dirs_[path];
    const size_t slash = path.rfind('/', path.size() - 2);
    AddEntry(path.substr(0, slash + 1), path.substr(slash + 1, path.size() - slash - 2),
             EntryKind::kDirectory);
  }
  void AddFile(const std::string& path, const MemoryFile& file, bool opened = false) {
    engine_.Put(Of(path), file, opened);
    std::lock_guard lock(mu_);
    const size_t slash = path.rfind('/');
    AddEntry(path.substr(0, slash + 1), path.substr(slash + 1), EntryKind::kFile);
  }
  // Looked up, the file is only promised, with that size; opened, it is what AddFile says.
  void AddPromised(const std::string& path, const MemoryFile& file, Promise promise) {
    AddFile(path, file);
    std::lock_guard lock(mu_);
    promises_[path] = std::move(promise);
  }
  // From now on a lookup finds the current version, as after an open.
  void ForgetPromise(const std::string& path) {
    std::lock_guard lock(mu_);
    promises_.erase(path);
  }
  // Listed, but not to be found when looked up.
  void AddListedName(const std::string& dir, const std::string& name) {
    std::lock_guard lock(mu_);
    AddEntry(dir, name, EntryKind::kFile);
  }
  static core::Url Of(const std::string& path) {
    auto url = core::ParseUrl("http://h" + path);
    DARTFS_CHECK(url.has_value());
    return *url;
  }

  DirRef Root() const override { return {"/"}; }
  void Lookup(const DirRef& dir, std::string_view name, core::TimePoint deadline,
              LookupDone done) override {
    ++lookup_count;
    last_deadline = deadline;
    lookups.Pass(
        [this, path = dir.key + std::string(name), done = std::move(done)](bool passed) mutable {
          if (!passed) return done(core::MakeError(core::Code::kCancelled, "cancelled"));
          done(Find(path, true));
        });
  }
  void Open(const DirRef& dir, std::string_view name, core::TimePoint deadline,
            LookupDone done) override {
    ++open_count;
    last_deadline = deadline;
    done(Find(dir.key + std::string(name), false));
  }
  void List(const DirRef& dir, core::TimePoint, ListDone done) override {
    ++list_count;
    std::shared_ptr<const Listing> listing;
    {
      std::lock_guard lock(mu_);
      auto copy = std::make_shared<Listing>();
      for (const auto& [name, kind] : dirs_.at(dir.key)) {
        ListedEntry entry;
        entry.name = name;
        entry.kind = kind;
        copy->entries.push_back(std::move(entry));
      }
      listing = std::move(copy);
    }
    done(std::move(listing));
  }
  void ProbeAhead(const DirRef&) override { ++probes; }
  std::optional<Found> Known(const DirRef& dir, const ListedEntry& entry) override {
    const auto url = UrlOf(dir, entry.name);
    const auto opened = engine_.OpenCached(*url);
    if (entry.kind != EntryKind::kFile || !opened || !*opened) return std::nullopt;
    Found found;
    found.object = **opened;
    found.url = *url;
    return found;
  }
  core::Result<core::Url> UrlOf(const DirRef& dir, std::string_view name) const override {
    return core::ParseUrl("http://h" + dir.key + std::string(name));
  }
  core::Result<DirRef> DirOf(const DirRef&, std::string_view) const override {
    return core::MakeError(core::Code::kUnsupported, "not known without asking");
  }

  Gate lookups;
  std::atomic<core::TimePoint> last_deadline{};
  std::atomic<int> lookup_count{0}, open_count{0}, list_count{0}, probes{0};

 private:
  void AddEntry(const std::string& dir, const std::string& name, EntryKind kind) {
    dirs_[dir][name] = kind;
  }
  core::Result<Found> Find(const std::string& path, bool promised) {
    Found found;
    {
      std::lock_guard lock(mu_);
      if (dirs_.contains(path + "/")) {
        found.kind = EntryKind::kDirectory;
        found.dir = {path + "/"};
        return found;
      }
      const auto promise = promises_.find(path);
      if (promise != promises_.end()) found.promise = promise->second;
    }
    found.mtime = found.promise ? std::optional<int64_t>(5) : std::nullopt;
    if (found.promise && promised) return found;
    found.object = engine_.Current(Of(path));
    if (!found.object) return core::MakeError(core::Code::kNotFound, "no such name");
    found.url = Of(path);
    if (found.promise && found.promise->size != found.object->size()) found.promise.reset();
    return found;
  }

  MemoryEngine& engine_;
  std::mutex mu_;
  std::map<std::string, Promise> promises_;
  std::map<std::string, std::map<std::string, EntryKind>> dirs_;
};

}  // namespace dartfs::fs
