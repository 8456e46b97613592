// What `status` and `explain` answer (CONTROL.md), made of the parts' own statistics. Nothing here
// waits for the network; queries and logins are left out or hashed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/url.h"
#include "fs/namespace.h"

namespace dartfs::core {
class Engine;
class Store;
struct UrlReport;
}  // namespace dartfs::core

namespace dartfs::app {

struct MountFacts {
  std::string mountpoint;  // raw bytes
  std::string source;      // redacted
  core::Duration age{};
  size_t open_files = 0, open_dirs = 0, nodes = 0;
  size_t waiting = 0;            // requests without an answer yet
  std::string passthrough;       // "on", or why not
  size_t passthrough_files = 0;  // that the kernel reads by itself at present
  uint64_t passthrough_opens = 0;
  std::vector<std::pair<std::string, uint64_t>> requests;  // by kind
  std::vector<std::pair<std::string, std::string>> options;
};

struct NodeFacts {
  std::string cache_dir;
  core::TimePoint started;
  bool stays = false;  // also without a mount
  std::vector<MountFacts> mounts;
};

// Of one mount: as in `status`.
nlohmann::json MountReport(const MountFacts& mount);

nlohmann::json StatusReport(const NodeFacts& facts, core::Engine& engine);

// `url` is asked about as given; nothing is fetched.
nlohmann::json ExplainReport(const core::Url& url, const std::string& digest, core::Engine& engine);

// Adds `listing` to the report of a directory's URL; nothing when no listing was asked for.
void AddListingReport(nlohmann::json& report, const fs::ListingReport& known);

// A local ID or URL for people: the query, if any, as "?sha256:<12 hex digits>", so that two that
// differ only there can be told apart.
std::string ShowWithoutQuery(const std::string& id);

}  // namespace dartfs::app
