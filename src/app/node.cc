#include "app/node.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/control_dispatch.h"
#include "app/control_server.h"
#include "app/credentials.h"
#include "app/json_fields.h"
#include "app/mount_paths.h"
#include "app/reports.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"
#include "core/engine/engine.h"
#include "fs/http_namespace.h"
#include "fs/mount.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using core::Status;
using nlohmann::json;

constexpr size_t kSchedulerThreads = 2;

class NodeImpl final : public Node {
 public:
  NodeImpl(const Options& options, OnMounted on_mounted)
      : options_(options), on_mounted_(std::move(on_mounted)) {}
  ~NodeImpl() override { Stop(); }

  Status Start() {
    TRY_ASSIGN(source_, core::ParseUrl(options_.source));
    ended_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!ended_.valid()) return core::ErrnoError(errno, "eventfd");
    TRY(StartCore());
    TRY(StartMount());
    return StartControl();
  }

  int ended_fd() const override { return ended_.get(); }
  const std::string& mountpoint() const override { return mount_->mountpoint(); }
  void Stop() override;

 private:
  Status StartCore();
  Status StartMount();
  Status StartControl();
  core::IdentityOptions IdentityOptions() const;
  NodeFacts Facts() const;
  struct Explained {
    core::Url url;
    std::optional<fs::DirRef> dir;  // where it is, or may be, a directory of the mount
  };
  Result<Explained> WhatToExplain(const json& request) const;

  const Options options_;
  const OnMounted on_mounted_;
  const core::TimePoint started_ = core::RealClock().Now();
  core::Url source_;
  core::UniqueFd ended_;
  std::unique_ptr<core::DiskIo> disk_;
  std::unique_ptr<core::Scheduler> scheduler_;
  std::unique_ptr<core::Scheduler> names_worker_;
  std::unique_ptr<core::Store> store_;
  std::unique_ptr<core::HttpClient> http_;
  std::unique_ptr<core::Engine> engine_;
  fs::HttpNamespace* names_ = nullptr;  // owned by the mount
  std::unique_ptr<fs::Mount> mount_;
  std::thread mount_watch_;
  ControlDispatch dispatch_;
  std::unique_ptr<core::Scheduler> explain_worker_;
  std::unique_ptr<ControlServer> control_;
};

core::IdentityOptions NodeImpl::IdentityOptions() const {
  core::IdentityOptions identity;
  identity.cache_namespace = options_.cache_namespace;
  identity.ignore_query = options_.ignore_query;
  identity.oci_digest_only = options_.oci_digest_only;
  identity.trusted_origins = options_.trusted_origins;
  return identity;
}

Status NodeImpl::StartCore() {
  TRY(core::ValidateIdentityOptions(IdentityOptions()));
  core::DiskIoOptions disk;
  disk.backend = options_.disk_io;
  TRY_ASSIGN(disk_, core::MakeDiskIo(disk));
  scheduler_ = core::MakeThreadScheduler("engine", kSchedulerThreads, core::RealClock());
  names_worker_ = core::MakeThreadScheduler("names", 1, core::RealClock());

  core::StoreOptions store;
  store.dir = options_.cache_dir;
  store.limit_bytes = options_.cache_size;
  auto opened = core::Store::Open(store, *disk_, *scheduler_);
  if (!opened) {
    core::Error error = std::move(opened).error();
    if (error.code == Code::kBusy) {
      error.context +=
          ": give this mount a cache directory of its own (--cache-dir DIR, or -o "
          "cache_dir=DIR), or unmount what that node serves first";
    }
    return error;
  }
  store_ = std::move(*opened);

  core::HttpClientOptions http;
  http.connections_per_origin = options_.connections;
  http.ca_file = options_.ca_file;
  http.allow_link_local = options_.allow_link_local;
  TRY_ASSIGN(http_, core::MakeHttpClient(http));

  core::EngineOptions engine;
  engine.grid = store.grid;
  engine.identity = IdentityOptions();
  engine.inflight_bytes = options_.inflight;
  engine.max_readahead_bytes = options_.read_ahead;
  engine.spool_limit_bytes = options_.spool_limit;
  engine_ = core::Engine::Create(engine, *store_, *http_, *scheduler_, core::RealRandom());
  return {};
}

Status NodeImpl::StartMount() {
  fs::HttpNamespaceOptions names;
  names.root = source_;
  names.authorization = AuthorizationOf(source_);
  names.ttl = options_.ttl;
  names.immutable = options_.immutable;
  TRY_ASSIGN(auto made,
             fs::HttpNamespace::Create(names, *engine_, *names_worker_, core::RealRandom()));
  names_ = made.get();

  fs::MountOptions mount;
  mount.mountpoint = options_.mountpoint;
  mount.source = options_.source;
  mount.allow_other = options_.allow_other;
  mount.noexec = options_.noexec;
  mount.uid = options_.uid.value_or(geteuid());
  mount.gid = options_.gid.value_or(getegid());
  mount.umask = options_.umask.value_or(0);
  mount.timeout = options_.timeout.value_or(core::Duration::zero());
  mount.ttl = options_.ttl;
  mount.authorization = names.authorization;
  mount.on_mounted = on_mounted_;
  TRY_ASSIGN(mount_, fs::Mount::Create(std::move(mount), std::move(made), *engine_));
  mount_watch_ = core::StartThread("mount-watch", [this] {
    mount_->Wait();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(ended_.get(), &one, sizeof one);
  });
  return {};
}

Status NodeImpl::StartControl() {
  dispatch_.Add("status",
                [this](const json&) -> Result<json> { return StatusReport(Facts(), *engine_); });
  // Looks into the cache's index: on a disk that hangs, `status` answers all the same.
  explain_worker_ = core::MakeThreadScheduler("explain", 1, core::RealClock());
  const auto explain = [this](const json& request) -> Result<json> {
    TRY_ASSIGN(const Explained what, WhatToExplain(request));
    json report = ExplainReport(what.url, *engine_);
    if (what.dir) AddListingReport(report, names_->ExplainListing(*what.dir));
    return report;
  };
  dispatch_.AddBlocking("explain", explain, *explain_worker_);
  ControlServerOptions control;
  control.path = options_.cache_dir + "/control";
  control.allowed_uid = geteuid();
  TRY_ASSIGN(control_,
             ControlServer::Create(control, [this](const std::string& line, ControlAnswer answer) {
               dispatch_.Handle(line, std::move(answer));
             }));
  return {};
}

NodeFacts NodeImpl::Facts() const {
  return {options_.cache_dir, started_, {{mount_->mountpoint(), core::RedactUrl(options_.source)}}};
}

Result<NodeImpl::Explained> NodeImpl::WhatToExplain(const json& request) const {
  if (const auto text = TextField(request, "url")) {
    TRY_ASSIGN(const core::Url url, core::ParseUrl(*text));
    return Explained{url, names_->DirOfUrl(url)};
  }
  const auto encoded = TextField(request, "path");
  const auto path = encoded ? core::PercentDecode(*encoded) : std::nullopt;
  if (!path) return MakeError(Code::kInvalidArgument, "explain needs a url or a path");
  const auto below = PathBelow(mount_->mountpoint(), *path);
  if (!below) {
    return MakeError(Code::kNotFound, core::EscapeForeign(*path) +
                                          " does not lie on a mount of this node (" +
                                          core::EscapeForeign(mount_->mountpoint()) + ")");
  }
  if (below->empty()) return Explained{source_, names_->Root()};
  TRY_ASSIGN(const core::Url url, UrlOfPath(*names_, *below));
  const auto dir = DirOfPath(*names_, *below);
  return Explained{url, dir ? std::optional(*dir) : std::nullopt};
}

void NodeImpl::Stop() {
  if (control_ != nullptr) control_->Stop();
  if (mount_ != nullptr) mount_->Stop();
  if (mount_watch_.joinable()) mount_watch_.join();
  // After the mount, whose end need not wait for a disk that hangs.
  explain_worker_.reset();
  if (mount_ != nullptr) names_->Stop();
  if (engine_ != nullptr) engine_->Stop();
  if (http_ != nullptr) http_->Stop();
  mount_.reset();
  names_worker_.reset();
  if (store_ != nullptr) store_->Stop();
  if (disk_ != nullptr) disk_->Stop();
  if (scheduler_ != nullptr) scheduler_->Stop();
}

}  // namespace

Result<std::unique_ptr<Node>> Node::Start(const Options& options, OnMounted on_mounted) {
  auto node = std::make_unique<NodeImpl>(options, std::move(on_mounted));
  TRY(node->Start());
  LOG_INFO("{} mounted on {}; cache {}, {}", core::RedactUrl(options.source),
           core::EscapeForeign(node->mountpoint()), core::EscapeForeign(options.cache_dir),
           core::FormatSize(options.cache_size));
  return std::unique_ptr<Node>(std::move(node));
}

}  // namespace dartfs::app
