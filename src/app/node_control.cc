#include "app/node_control.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/attach.h"
#include "app/attach_request.h"
#include "app/json_fields.h"
#include "app/reports.h"
#include "app/target_walk.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using nlohmann::json;

bool IsFuseDevice(int fd) {
  constexpr unsigned kMiscMajor = 10;
  constexpr unsigned kFuseMinor = 229;  // the kernel's Documentation/admin-guide/devices.txt
  struct stat st {};
  return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
         st.st_rdev == makedev(kMiscMajor, kFuseMinor);
}

Result<TargetName> TargetNameOf(const json& request) {
  TargetName name;
  name.url = TextField(request, "url").value_or("");
  const auto encoded = TextField(request, "path");
  const auto path = encoded ? core::PercentDecode(*encoded) : std::nullopt;
  if (name.url.empty() && !path) {
    return MakeError(Code::kInvalidArgument, "this needs a url or a path");
  }
  name.path = path.value_or("");
  return name;
}

}  // namespace

Result<std::unique_ptr<NodeControl>> NodeControl::Create(const Options& options, NodeCore& core,
                                                         MountSet& mounts) {
  std::unique_ptr<NodeControl> control(new NodeControl(options, core, mounts));
  control->AddVerbs();
  ControlServerOptions server;
  server.path = options.cache_dir + "/control";
  server.allowed_uid = geteuid();
  TRY_ASSIGN(control->server_,
             ControlServer::Create(
                 server, [raw = control.get()](ControlRequest request, ControlAnswer answer) {
                   raw->dispatch_.Handle(std::move(request), std::move(answer));
                 }));
  return control;
}

NodeControl::NodeControl(const Options& options, NodeCore& core, MountSet& mounts)
    : options_(options),
      core_(core),
      mounts_(mounts),
      mount_namespace_(MountNamespace()),
      jobs_(core.engine(), mounts),
      explain_worker_(core::MakeThreadScheduler("explain", 1, core::RealClock())) {}

NodeControl::~NodeControl() {
  StopListening();
  StopAnswering();
}

void NodeControl::AddVerbs() {
  dispatch_.Add("status", [this](const json&) { return Status(); });
  // Looks into the cache's index: on a disk that hangs, `status` answers all the same.
  dispatch_.AddBlocking(
      "explain", [this](const json& request) { return Explain(request); }, *explain_worker_);
  dispatch_.Add("prepare", [this](const json& request) { return Prepare(request); });
  dispatch_.AddBlockingWithFd(
      "attach",
      [this](const json& request, core::UniqueFd device) {
        return Attach(request, std::move(device));
      },
      mounts_.worker());
  jobs_.AddVerbs(dispatch_);
}

Result<json> NodeControl::Status() {
  NodeFacts facts{options_.cache_dir, started_, options_.no_mount, {}};
  for (const auto& mount : mounts_.All()) facts.mounts.push_back(mount->Facts());
  return StatusReport(facts, core_.engine());
}

Result<json> NodeControl::Explain(const json& request) {
  TRY_ASSIGN(const TargetName name, TargetNameOf(request));
  TRY_ASSIGN(const Target target, FindTarget(name, mounts_));
  json report =
      target.url ? ExplainReport(*target.url, target.digest, core_.engine()) : json::object();
  if (target.mount != nullptr) report["mountpoint"] = target.mount->mountpoint();
  if (target.dir) AddListingReport(report, target.mount->names().ExplainListing(*target.dir));
  return report;
}

Result<Options> NodeControl::Attachable(const json& request, dev_t& device) {
  TRY_ASSIGN(const AttachRequest asked, AttachRequestFrom(request));
  if (asked.mount_namespace != mount_namespace_) {
    return MakeError(Code::kRefused,
                     "the node that has the cache directory " + EscapeForeign(options_.cache_dir) +
                         " lives in another mount namespace (a container, or a service with "
                         "PrivateMounts or the like) and could not unmount this: give the mount a "
                         "cache directory of its own, or the node the host's mounts");
  }
  TRY_ASSIGN(Options options, OptionsOfAttach(asked, options_));
  TRY(mounts_.Check(options.mountpoint));
  device = asked.device;
  return options;
}

Result<json> NodeControl::Prepare(const json& request) {
  dev_t unused = 0;
  TRY_ASSIGN(const Options options, Attachable(request, unused));
  return json{{"source", core::RedactUrl(options.source)},
              {"allow_other", options.allow_other},
              {"noexec", options.noexec}};
}

Result<json> NodeControl::Attach(const json& request, core::UniqueFd device) {
  ServedMount::Start start;
  start.device.emplace();
  TRY_ASSIGN(const Options options, Attachable(request, start.device->number));
  if (!IsFuseDevice(device.get())) {
    return MakeError(Code::kInvalidArgument, "attach needs the /dev/fuse of a mount");
  }
  start.device->fd = std::move(device);
  TRY(mounts_.Add(options, std::move(start)));
  return json{{"mountpoint", options.mountpoint}, {"pid", getpid()}};
}

void NodeControl::StopListening() {
  if (server_ != nullptr) server_->Stop();
}

void NodeControl::StopAnswering() {
  explain_worker_.reset();
  jobs_.Stop();
}

}  // namespace dartfs::app
