#include "app/node_core.h"

#include <span>
#include <utility>

#include "core/base/random.h"
#include "core/base/text.h"
#include "httpd/client_checks.h"

namespace dartfs::app {
namespace {

using core::Result;
using core::Status;

constexpr size_t kSchedulerThreads = 2;

core::IdentityOptions IdentityOptionsOf(const Options& options) {
  core::IdentityOptions identity;
  identity.cache_namespace = options.cache_namespace;
  identity.ignore_query = options.ignore_query;
  identity.oci_digest_only = options.oci_digest_only;
  identity.trusted_origins = options.trusted_origins;
  return identity;
}

std::string MakeViaId() {
  const uint64_t random = core::RealRandom().Next();
  return core::HexEncode(std::as_bytes(std::span(&random, 1)));
}

}  // namespace

Result<core::OriginPolicy> OriginPolicyOf(const Options& options) {
  core::OriginPolicy policy;
  policy.allow_link_local = options.allow_link_local;
  for (const std::string& rule : options.origin_allow) {
    TRY_ASSIGN(auto parsed, core::ParseOriginRule(rule));
    policy.allow.push_back(std::move(parsed));
  }
  for (const std::string& rule : options.origin_deny) {
    TRY_ASSIGN(auto parsed, core::ParseOriginRule(rule));
    policy.deny.push_back(std::move(parsed));
  }
  return policy;
}

Result<std::unique_ptr<NodeCore>> NodeCore::Open(const Options& options) {
  std::unique_ptr<NodeCore> core(new NodeCore);
  TRY(core->Start(options));
  return core;
}

NodeCore::~NodeCore() {
  StopTransfers();
  Stop();
}

Status NodeCore::Start(const Options& options) {
  cache_dir_ = options.cache_dir;
  const core::IdentityOptions identity = IdentityOptionsOf(options);
  TRY(core::ValidateIdentityOptions(identity));
  core::DiskIoOptions disk;
  disk.backend = options.disk_io;
  TRY_ASSIGN(disk_, core::MakeDiskIo(disk));
  scheduler_ = core::MakeThreadScheduler("engine", kSchedulerThreads, core::RealClock());
  names_worker_ = core::MakeThreadScheduler("names", 1, core::RealClock());
  TRY(OpenStore(options));

  core::HttpClientOptions http;
  http.connections_per_origin = options.connections;
  http.ca_file = options.ca_file;
  http.allow_link_local = options.allow_link_local;
  via_id_ = MakeViaId();
  http.via = httpd::ViaOf(via_id_);
  TRY_ASSIGN(http.origin_policy, OriginPolicyOf(options));
  TRY_ASSIGN(http_, core::MakeHttpClient(http));

  core::EngineOptions engine;
  engine.identity = identity;
  engine.inflight_bytes = options.inflight;
  engine.max_readahead_bytes = options.read_ahead;
  engine.spool_limit_bytes = options.spool_limit;
  engine_ = core::Engine::Create(engine, *store_, *http_, *scheduler_, core::RealRandom());
  return {};
}

Status NodeCore::OpenStore(const Options& options) {
  core::StoreOptions store;
  store.dir = options.cache_dir;
  store.limit_bytes = options.cache_size;
  TRY_ASSIGN(store_, core::Store::Open(store, *disk_, *scheduler_));
  return {};
}

void NodeCore::StopTransfers() {
  if (engine_ != nullptr) engine_->Stop();
  if (http_ != nullptr) http_->Stop();
}

void NodeCore::Stop() {
  names_worker_.reset();
  if (store_ != nullptr) store_->Stop();
  if (disk_ != nullptr) disk_->Stop();
  if (scheduler_ != nullptr) scheduler_->Stop();
}

}  // namespace dartfs::app
