// The node's answers as text for people (dartfsctl(1)). What is missing in an answer is left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dartfs::ctl {

std::string RenderStatus(const nlohmann::json& status);
std::string RenderExplain(const nlohmann::json& explained);

}  // namespace dartfs::ctl
