// The node's answers as text for people (dartfsctl(1)). What is missing in an answer is left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dartfs::ctl {

std::string RenderStatus(const nlohmann::json& status);
std::string RenderMounts(const nlohmann::json& status);
std::string RenderExplain(const nlohmann::json& explained);
std::string RenderJobs(const nlohmann::json& jobs);
std::string RenderStarted(const nlohmann::json& started);
std::string RenderJobEnd(const nlohmann::json& job);
std::string RenderCancelled(const nlohmann::json& answer);
std::string RenderSet(const nlohmann::json& answer);

}  // namespace dartfs::ctl
