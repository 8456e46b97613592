#include "origin/stats.h"

#include <algorithm>
#include <cstdio>

namespace dartfs::origin {
namespace {

constexpr std::size_t kMaxPaths = 100000;  // more are counted together
constexpr char kOtherPaths[] = "(other)";

void CountRequest(PathStats& stats, const Request& request, int status) {
  ++stats.requests;
  if (request.Find("Range") != nullptr) ++stats.ranged;
  ++stats.by_method[request.method];
  ++stats.by_status[status];
  stats.max_active = std::max(stats.max_active, ++stats.active);
}

void AddTo(PathStats& sum, const PathStats& other) {
  sum.requests += other.requests;
  sum.ranged += other.ranged;
  sum.body_bytes += other.body_bytes;
  sum.active += other.active;
  sum.max_active = std::max(sum.max_active, other.max_active);
  for (const auto& [method, n] : other.by_method) sum.by_method[method] += n;
  for (const auto& [status, n] : other.by_status) sum.by_status[status] += n;
}

PathStats Copy(const StatsTable::Entry& entry) {
  PathStats stats = entry.stats;
  stats.body_bytes = entry.body_bytes.load(std::memory_order_relaxed);
  return stats;
}

void PrintRequest(const Request& request, int status, std::uint64_t connection) {
  const std::string* range = request.Find("Range");
  // Printable as it is, all else as %XX.
  const std::string target = PercentEncode(request.target, "-._~:/?#[]@!$&'()*+,;=%");
  std::fprintf(stderr, "#%llu %s %s %s -> %d\n", static_cast<unsigned long long>(connection),
               PercentEncode(request.method).c_str(), target.c_str(),
               range == nullptr ? "" : PercentEncode(*range, "=-, ").c_str(), status);
}

}  // namespace

std::string LoggedRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualsNoCase(key, name)) return value;
  }
  return "";
}

StatsTable::EntryPtr StatsTable::Begin(const Request& request, int status,
                                       std::uint64_t connection) {
  const std::lock_guard lock(mu_);
  const bool known = entries_.size() < kMaxPaths || entries_.count(request.path) != 0;
  EntryPtr& entry = entries_[known ? request.path : kOtherPaths];
  if (!entry) entry = std::make_shared<Entry>();
  CountRequest(entry->stats, request, status);
  CountRequest(total_, request, status);
  if (log_options_.to_stderr) PrintRequest(request, status, connection);
  if (log_options_.limit > 0) {
    if (log_.size() >= log_options_.limit) log_.pop_front();
    log_.push_back({request.method, request.target, request.headers, status, connection});
  }
  changed_.notify_all();
  return entry;
}

void StatsTable::End(const EntryPtr& entry) {
  const std::lock_guard lock(mu_);
  --entry->stats.active;
  --total_.active;
}

void StatsTable::AddBodyBytes(Entry& entry, std::uint64_t n) {
  entry.body_bytes.fetch_add(n, std::memory_order_relaxed);
  total_body_bytes_.fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t StatsTable::ConnectionOpened() {
  const std::lock_guard lock(mu_);
  ++accepted_;
  ++open_;
  return ++numbered_;
}

void StatsTable::ConnectionClosed() {
  const std::lock_guard lock(mu_);
  --open_;
  changed_.notify_all();
}

Stats StatsTable::Snapshot() const {
  const std::lock_guard lock(mu_);
  Stats out;
  out.total = total_;
  out.total.body_bytes = total_body_bytes_.load(std::memory_order_relaxed);
  for (const auto& [path, entry] : entries_) out.paths[path] = Copy(*entry);
  out.connections_accepted = accepted_;
  out.connections_open = open_;
  return out;
}

PathStats StatsTable::Sum(std::string_view glob) const {
  const std::lock_guard lock(mu_);
  return SumLocked(glob);
}

PathStats StatsTable::SumLocked(std::string_view glob) const {
  PathStats sum;
  for (const auto& [path, entry] : entries_) {
    if (GlobMatch(glob, path)) AddTo(sum, Copy(*entry));
  }
  return sum;
}

std::vector<LoggedRequest> StatsTable::Log() const {
  const std::lock_guard lock(mu_);
  return {log_.begin(), log_.end()};
}

void StatsTable::Reset() {
  const std::lock_guard lock(mu_);
  const std::uint64_t active = total_.active;
  total_ = {};
  total_.active = total_.max_active = active;
  total_body_bytes_.store(0, std::memory_order_relaxed);
  // Entries in use live on with their connections and are no longer shown.
  entries_.clear();
  log_.clear();
  accepted_ = 0;
}

bool StatsTable::WaitForRequests(std::string_view glob, std::uint64_t count,
                                 std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, timeout, [&] { return SumLocked(glob).requests >= count; });
}

bool StatsTable::WaitForOpenConnections(std::uint64_t at_most,
                                        std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, timeout, [&] { return open_ <= at_most; });
}

}  // namespace dartfs::origin
