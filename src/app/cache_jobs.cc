#include "app/cache_jobs.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/awaited.h"
#include "app/json_fields.h"
#include "app/option_table.h"
#include "app/warm_window.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using core::ToMillis;
using nlohmann::json;
using ObjectPtr = std::shared_ptr<core::Object>;

std::string ShownObject(const core::Requester& requester) {
  return core::RedactUrl(requester.url.ToString());
}

Result<std::vector<TargetName>> TargetsOf(const json& request) {
  std::vector<TargetName> targets;
  const json* const list = Field(request, "targets");
  if (list == nullptr || !list->is_array() || list->empty() ||
      list->size() > CacheJobs::kMostTargets) {
    return MakeError(Code::kInvalidArgument, "this needs 1 to " +
                                                 std::to_string(CacheJobs::kMostTargets) +
                                                 " targets, each with a url or a path");
  }
  for (const json& item : *list) {
    const auto encoded = TextField(item, "path");
    const auto path = encoded ? core::PercentDecode(*encoded) : std::nullopt;
    const auto url = TextField(item, "url");
    if (!path && !url) {
      return MakeError(Code::kInvalidArgument, "a target needs a url or a path");
    }
    targets.push_back({path.value_or(""), url.value_or("")});
  }
  return targets;
}

std::string ShownTargets(const std::vector<TargetName>& targets) {
  std::string text = targets.front().Shown();
  if (targets.size() > 1) text += " and " + std::to_string(targets.size() - 1) + " more";
  return text;
}

json JobReport(const JobFacts& facts) {
  constexpr std::array<const char*, 4> kStates = {"running", "done", "failed", "cancelled"};
  const JobProgress& progress = facts.progress;
  json report = {{"job", facts.id},
                 {"verb", facts.verb},
                 {"what", facts.what},
                 {"state", kStates[static_cast<size_t>(facts.state)]},
                 {"age_ms", ToMillis(facts.age)},
                 {"walking", progress.walking},
                 {"objects",
                  {{"found", progress.objects_found},
                   {"done", progress.objects_done},
                   {"failed", progress.objects_failed}}},
                 {"bytes", {{"done", progress.bytes_done}, {"total", progress.bytes_total}}},
                 {"errors", progress.errors}};
  if (facts.state != JobState::kRunning) report["took_ms"] = ToMillis(facts.took);
  if (facts.verb == "verify") report["bad_granules"] = progress.bad_granules;
  return report;
}

Result<uint64_t> IdOf(const json& request) {
  const auto id = NumberField(request, "job");
  if (id && *id > 0) return static_cast<uint64_t>(*id);
  return MakeError(Code::kInvalidArgument, "this needs the number of a job");
}

core::Error NoSuchJob(uint64_t id) {
  return MakeError(Code::kNotFound, "no job " + std::to_string(id) +
                                        ": of those that are over only the last are remembered");
}

}  // namespace

void CacheJobs::AddVerbs(ControlDispatch& dispatch) {
  AddJob(dispatch, "warm", &CacheJobs::Warm);
  AddJob(dispatch, "verify", &CacheJobs::Verify);
  AddJob(dispatch, "evict", &CacheJobs::Evict);
  AddJob(dispatch, "pin", &CacheJobs::Pin);
  AddJob(dispatch, "unpin", &CacheJobs::Unpin);
  dispatch.Add("jobs", [this](const json&) -> Result<json> {
    json list = json::array();
    for (const JobFacts& facts : jobs_.All()) list.push_back(JobReport(facts));
    return json{{"jobs", std::move(list)}};
  });
  dispatch.Add("job", [this](const json& request) -> Result<json> {
    TRY_ASSIGN(const uint64_t id, IdOf(request));
    const auto facts = jobs_.Find(id);
    if (!facts) return NoSuchJob(id);
    return JobReport(*facts);
  });
  dispatch.Add("cancel", [this](const json& request) -> Result<json> {
    TRY_ASSIGN(const uint64_t id, IdOf(request));
    if (!jobs_.Find(id)) return NoSuchJob(id);
    return json{{"job", id}, {"cancelled", jobs_.Cancel(id)}};
  });
  dispatch.Add("set", [this](const json& request) { return Set(request); });
}

void CacheJobs::AddJob(ControlDispatch& dispatch, const char* verb, Body body) {
  dispatch.Add(verb, [this, verb, body](const json& request) -> Result<json> {
    TRY_ASSIGN(Targets targets, TargetsOf(request));
    const std::string what = ShownTargets(targets);
    TRY_ASSIGN(const uint64_t id,
               jobs_.Start(verb, what, [this, body, targets = std::move(targets)](Job& job) {
                 (this->*body)(job, targets);
               }));
    LOG_INFO("job {}: {} {}", id, verb, what);
    return json{{"job", id}};
  });
}

void CacheJobs::Walk(Job& job, const Targets& targets, const TargetWalk::Visit& visit) {
  TargetWalk walk(mounts_, engine_, job);
  for (const TargetName& target : targets) {
    if (job.cancelled()) return;
    walk.Run(target, [&](ObjectPtr object, const core::Requester& requester) {
      job.Update([&](JobProgress& progress) {
        ++progress.objects_found;
        progress.bytes_total += object->size();
      });
      visit(std::move(object), requester);
    });
  }
  job.Update([](JobProgress& progress) { progress.walking = false; });
}

void CacheJobs::Warm(Job& job, const Targets& targets) {
  WarmWindow window(engine_, job);
  Walk(job, targets, [&window](ObjectPtr object, const core::Requester& requester) {
    window.Add(std::move(object), requester, ShownObject(requester));
  });
  window.Finish();
}

void CacheJobs::Verify(Job& job, const Targets& targets) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  constexpr int kTries = 100;  // then it is a failure of this object, and the others follow
  Walk(job, targets, [&](const ObjectPtr& object, const core::Requester& requester) {
    const auto verify = [&] {
      return engine_.store().Verify(object->stored(), [&job] { return !job.cancelled(); });
    };
    const auto report = RetryWhileBusy(verify, kTries, kPause, [&job] { return job.cancelled(); });
    if (!report) return job.Fail(ShownObject(requester), report.error());
    job.Update([&](JobProgress& progress) {
      ++progress.objects_done;
      progress.bytes_done += report->checked_bytes;
      progress.bad_granules += report->bad_granules;
      if (report->bad_granules > 0 && progress.errors.size() < Job::kMostErrors) {
        progress.errors.push_back(ShownObject(requester) + ": " +
                                  std::to_string(report->bad_granules) +
                                  " granules were damaged; their blocks are fetched again when "
                                  "they are read");
      }
    });
  });
}

void CacheJobs::Evict(Job& job, const Targets& targets) {
  Walk(job, targets, [&](const ObjectPtr& object, const core::Requester& requester) {
    if (engine_.store().IsPinned(*object->stored())) {
      return job.Fail(ShownObject(requester),
                      MakeError(Code::kRefused, "is pinned, and stays: dartfsctl unpin it first"));
    }
    const auto bytes = engine_.store().Evict(object->stored());
    if (!bytes) return job.Fail(ShownObject(requester), bytes.error());
    job.Update([&](JobProgress& progress) {
      ++progress.objects_done;
      progress.bytes_done += *bytes;
    });
  });
}

void CacheJobs::Pin(Job& job, const Targets& targets) { SetPinned(job, targets, true); }
void CacheJobs::Unpin(Job& job, const Targets& targets) { SetPinned(job, targets, false); }

void CacheJobs::SetPinned(Job& job, const Targets& targets, bool pinned) {
  Walk(job, targets, [&](const ObjectPtr& object, const core::Requester& requester) {
    const core::Status set = engine_.store().SetPinned(object->stored(), pinned);
    if (!set) return job.Fail(ShownObject(requester), set.error());
    job.Update([](JobProgress& progress) { ++progress.objects_done; });
  });
}

Result<json> CacheJobs::Set(const json& request) {
  const std::string name = TextField(request, "name").value_or("");
  const std::string value = TextField(request, "value").value_or("");
  if (name == "log-level") {
    Options unused;
    if (core::Status known = FindOption(name)->set(unused, value); !known) {
      return std::move(known).error().WithContext(name);
    }
    core::SetLogLevel(value);
  } else if (name == "bypass") {
    if (value != "on" && value != "off") {
      return MakeError(Code::kInvalidArgument, "bypass: expected on or off");
    }
    engine_.store().SetBypass(value == "on");
  } else {
    return MakeError(Code::kInvalidArgument, "what can be set: bypass on|off, log-level LEVEL");
  }
  LOG_INFO("{} set to {}", name, value);
  return json{{"name", name}, {"value", value}};
}

}  // namespace dartfs::app
