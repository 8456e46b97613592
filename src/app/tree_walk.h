// TreeWalk: the objects of a mount that are a name or stand below it. What a listing or a catalogue
// only promises is opened first. For the thread of a job: blocks, on origins too, up to deadlines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "app/job_table.h"
#include "core/engine/engine.h"
#include "fs/namespace.h"

namespace dartfs::app {

// Names to walk, and what is sent along with reads of what they mean. Both outlive the walk of it.
struct NamedTree {
  fs::Namespace& names;
  const std::string& authorization;
};

class TreeWalk {
 public:
  // An origin can make up names as it is asked: whatever it lists, a walk ends.
  struct Limits {
    uint64_t names = 1'000'000;  // files and directories of all walks together
    size_t depth = 64;
  };
  // An object, never null, as a requester holds it.
  using Visit =
      std::function<void(std::shared_ptr<core::Object> object, const core::Requester& requester)>;

  // The job outlives it.
  TreeWalk(Job& job, Limits limits) : job_(job), limits_(limits) {}
  explicit TreeWalk(Job& job) : TreeWalk(job, Limits()) {}

  // Visits each object; what can't be had is a failure of the job, and the walk goes on. `shown`
  // is what the name or directory is called in errors.
  void WalkName(const NamedTree& tree, const fs::DirRef& dir, const std::string& name,
                const std::string& shown, const Visit& visit) {
    WalkName(tree, dir, name, shown, 0, visit);
  }
  void WalkDirectory(const NamedTree& tree, const fs::DirRef& dir, const std::string& shown,
                     const Visit& visit) {
    WalkDirectory(tree, dir, shown, 0, visit);
  }

 private:
  using Ask = void (fs::Namespace::*)(const fs::DirRef&, std::string_view, core::TimePoint,
                                      fs::LookupDone);
  void WalkName(const NamedTree& tree, const fs::DirRef& dir, const std::string& name,
                const std::string& shown, size_t depth, const Visit& visit);
  void WalkDirectory(const NamedTree& tree, const fs::DirRef& dir, const std::string& shown,
                     size_t depth, const Visit& visit);
  core::Result<fs::Found> Find(Ask ask, const NamedTree& tree, const fs::DirRef& dir,
                               const std::string& name) const;
  // False, and a failure of the job, when that was one too many.
  bool Count(const std::string& shown);

  Job& job_;
  const Limits limits_;
  uint64_t counted_ = 0;
};

}  // namespace dartfs::app
