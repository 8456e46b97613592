#include "app/node.h"

#include <utility>

#include "app/http_door.h"
#include "app/mount_set.h"
#include "app/node_control.h"
#include "app/node_core.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Result;
using core::Status;

class NodeImpl final : public Node {
 public:
  NodeImpl(const Options& options, std::unique_ptr<NodeCore> core, std::unique_ptr<MountSet> mounts)
      : options_(options), core_(std::move(core)), mounts_(std::move(mounts)) {}
  ~NodeImpl() override { Stop(); }

  Status Begin(OnMounted on_mounted) override {
    LOG_INFO("cache {}, {}", core::EscapeForeign(options_.cache_dir),
             core::FormatSize(options_.cache_size));
    if (!options_.no_mount) {
      ServedMount::Start start;
      start.on_mounted = std::move(on_mounted);
      TRY(mounts_->Add(options_, std::move(start)));
    }
    TRY_ASSIGN(http_,
               HttpDoor::Open(options_, *core_, TakeGivenSockets(), [this] { return Facts(); }));
    TRY_ASSIGN(control_, NodeControl::Create(options_, *core_, *mounts_));
    return {};
  }

  int ended_fd() const override { return mounts_->ended_fd(); }
  std::vector<std::string> mountpoints() const override {
    std::vector<std::string> paths;
    for (const auto& mount : mounts_->All()) paths.push_back(mount->mountpoint());
    return paths;
  }
  void Reload(const Options& now, std::function<void()> done) override {
    if (http_ != nullptr) http_->ReopenLog();
    if (auto policy = OriginPolicyOf(now)) {
      if (http_ != nullptr) http_->SetOriginPolicy(*policy);
      LOG_INFO("reloading: {} rules allow origins, {} deny", policy->allow.size(),
               policy->deny.size());
      core_->engine().http().SetOriginPolicy(std::move(*policy));
    } else {
      LOG_ERROR("reload: the same origins may be asked as before: {}", policy.error().context);
    }
    mounts_->worker().Post([this, done = std::move(done)] {
      if (http_ != nullptr) {
        if (const Status reloaded = http_->Reload(options_); !reloaded) {
          LOG_ERROR("the registries' logins stay as they are: {}", reloaded.error().context);
        }
      }
      for (const auto& mount : mounts_->All()) {
        if (const Status reloaded = mount->names().Reload(); !reloaded) {
          LOG_ERROR("{}: the names stay as they are: {}", core::EscapeForeign(mount->mountpoint()),
                    reloaded.error().context);
        }
      }
      done();
    });
  }
  std::string Summary() const override {
    const size_t count = mounts_->All().size();
    return std::to_string(count) + (count == 1 ? " mount" : " mounts") + ", cache " +
           core::EscapeForeign(options_.cache_dir);
  }
  core::Scheduler& scheduler() override { return core_->engine().scheduler(); }

  void Stop() override {
    if (core_ == nullptr) return;
    if (control_ != nullptr) control_->StopListening();
    if (http_ != nullptr) http_->Drain();
    mounts_->Stop();
    // After the mounts, whose end need not wait for a disk that hangs.
    control_.reset();
    core_->StopTransfers();
    http_.reset();
    mounts_.reset();
    core_.reset();
  }

 private:
  NodeFacts Facts() const {
    NodeFacts facts{options_.cache_dir, started_, options_.no_mount, {}};
    for (const auto& mount : mounts_->All()) facts.mounts.push_back(mount->Facts());
    return facts;
  }

  const Options options_;
  const core::TimePoint started_ = core::RealClock().Now();
  std::unique_ptr<NodeCore> core_;
  std::unique_ptr<MountSet> mounts_;
  std::unique_ptr<NodeControl> control_;
  std::unique_ptr<HttpDoor> http_;
};

}  // namespace

Result<std::unique_ptr<Node>> Node::Open(const Options& options) {
  TRY_ASSIGN(auto core, NodeCore::Open(options));
  TRY_ASSIGN(auto mounts, MountSet::Create(*core, /*stays=*/options.no_mount));
  return std::unique_ptr<Node>(
      std::make_unique<NodeImpl>(options, std::move(core), std::move(mounts)));
}

}  // namespace dartfs::app
