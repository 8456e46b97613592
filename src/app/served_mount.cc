#include "app/served_mount.h"

#include <unistd.h>

#include <utility>

#include "app/option_table.h"
#include "core/base/credentials.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "fs/source.h"

namespace dartfs::app {

using core::Result;
using core::Status;

namespace {

Options WithOwner(Options options) {
  options.uid = options.uid.value_or(geteuid());
  options.gid = options.gid.value_or(getegid());
  return options;
}

}  // namespace

Result<std::shared_ptr<ServedMount>> ServedMount::Create(const Options& options, Start start,
                                                         NodeCore& core) {
  std::shared_ptr<ServedMount> mount(new ServedMount(options, core));
  TRY(mount->Mount(std::move(start)));
  return mount;
}

ServedMount::ServedMount(const Options& options, NodeCore& core)
    : options_(WithOwner(options)), core_(core) {}

ServedMount::~ServedMount() { Stop(); }

Status ServedMount::Mount(Start start) {
  TRY_ASSIGN(const fs::Source source, fs::ParseSource(options_.source));
  fs::NamespaceOptions names;
  if (source.kind == fs::SourceKind::kUrl) authorization_ = core::AuthorizationOf(source.url);
  names.authorization = authorization_;
  names.ttl = options_.ttl;
  names.immutable = options_.immutable;
  TRY_ASSIGN(auto made, fs::MakeNamespace(options_.source, names, core_.engine(),
                                          core_.names_worker(), core::RealRandom()));
  names_ = made.get();

  fs::MountOptions mount;
  mount.mountpoint = options_.mountpoint;
  mount.source = options_.source;
  mount.allow_other = options_.allow_other;
  mount.noexec = options_.noexec;
  mount.uid = options_.uid.value();
  mount.gid = options_.gid.value();
  mount.umask = options_.umask.value_or(0);
  mount.timeout = options_.timeout.value_or(core::Duration::zero());
  mount.ttl = options_.ttl;
  mount.authorization = authorization_;
  mount.passthrough = options_.passthrough;
  mount.probe_file = core_.cache_dir() + "/version";
  mount.fill = options_.fill;
  if (start.device) {
    mount.device = std::move(start.device->fd);
    mount.device_number = start.device->number;
  }
  mount.on_mounted = std::move(start.on_mounted);
  TRY_ASSIGN(mount_, fs::Mount::Create(std::move(mount), std::move(made), core_.engine()));
  watch_ = core::StartThread("mount-watch", [this, on_ended = std::move(start.on_ended)] {
    mount_->Wait();
    ended_.store(true, std::memory_order_release);
    if (on_ended) on_ended();
  });
  return {};
}

MountFacts ServedMount::Facts() const {
  const fs::MountStats stats = mount_->Stats();
  MountFacts facts;
  facts.mountpoint = stats.mountpoint;
  facts.source = stats.source;
  facts.age = core::RealClock().Now() - since_;
  facts.open_files = stats.open_files;
  facts.open_dirs = stats.open_dirs;
  facts.nodes = stats.nodes;
  facts.waiting = stats.waiting;
  facts.passthrough = stats.passthrough;
  facts.passthrough_files = stats.passthrough_nodes;
  facts.passthrough_opens = stats.passthrough_opens;
  facts.requests = stats.requests;
  for (const OptionRow& row : OptionTable()) {
    if (row.kind != OptionKind::kMount) continue;
    if (std::string value = row.show(options_); !value.empty()) {
      facts.options.emplace_back(row.name, std::move(value));
    }
  }
  return facts;
}

void ServedMount::Stop() {
  std::call_once(stopped_, [this] {
    if (mount_ == nullptr) return;
    mount_->Stop();
    if (watch_.joinable()) watch_.join();
    names_->Stop();
  });
}

}  // namespace dartfs::app
