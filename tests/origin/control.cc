#include "origin/control.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "origin/service.h"

namespace dartfs::origin {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPrefix = "/_ctl/";

Answer JsonAnswer(const Json& value) {
  Answer answer = TextAnswer(200, value.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  SetHeader(answer.headers, "Content-Type", "application/json");
  return answer;
}

Answer BadRequest(const std::string& why) { return TextAnswer(400, why + "\n"); }
Answer Done() { return JsonAnswer({{"ok", true}}); }

// A scalar as the text that parameters are parsed from; nullopt for objects, arrays and null.
std::optional<std::string> ScalarText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return value.dump();
  return std::nullopt;
}

// Empty on success, else what is wrong.
std::string ParseRule(const Json& json, FaultRule& rule) {
  if (!json.is_object() || !json.contains("fault") || !json["fault"].is_string()) {
    return "a rule is an object with a \"fault\"";
  }
  const std::string name = json["fault"].get<std::string>();
  const auto fault = ParseFault(name);
  if (!fault) return fmt::format("unknown fault \"{}\"; GET /_ctl/faults?names lists them", name);
  rule.fault = *fault;
  for (const auto& [key, value] : json.items()) {
    if (key == "fault") continue;
    const auto text = ScalarText(value);
    if (!text || !SetParameter(rule, key, *text)) {
      return fmt::format("fault \"{}\": unknown parameter or bad value for \"{}\"", name, key);
    }
  }
  return "";
}

Json RuleJson(const FaultTable::Entry& entry) {
  const FaultRule& rule = entry.rule;
  Json json = {{"fault", NameOf(rule.fault)},
               {"path", rule.path},
               {"matched", entry.matched},
               {"fired", entry.fired}};
  if (!rule.method.empty()) json["method"] = rule.method;
  if (rule.status != 0) json["status"] = rule.status;
  if (rule.times != 0) json["times"] = rule.times;
  return json;
}

Answer PostFaults(const Request& request, Service& service) {
  const Json json = Json::parse(request.body, nullptr, false);
  if (json.is_discarded()) return BadRequest("the body is not JSON");
  const Json list = json.is_array() ? json : Json::array({json});
  std::vector<FaultRule> rules;
  for (const Json& item : list) {
    FaultRule rule;
    if (const std::string wrong = ParseRule(item, rule); !wrong.empty()) return BadRequest(wrong);
    rules.push_back(std::move(rule));
  }
  const bool add = QueryParameter(request.query, "add").has_value();
  if (!add) service.faults().Set({});
  for (FaultRule& rule : rules) service.faults().Add(std::move(rule));
  return Done();
}

Answer GetFaults(const Request& request, Service& service) {
  Json list = Json::array();
  if (QueryParameter(request.query, "names")) {
    for (const Fault fault : AllFaults()) list.push_back(NameOf(fault));
  } else {
    for (const FaultTable::Entry& entry : service.faults().List()) list.push_back(RuleJson(entry));
  }
  return JsonAnswer(list);
}

Answer DeleteFaults(const Request&, Service& service) {
  service.faults().Set({});
  return Done();
}

Json PathJson(const PathStats& stats) {
  Json by_status = Json::object();
  for (const auto& [status, n] : stats.by_status) by_status[std::to_string(status)] = n;
  return {{"requests", stats.requests},     {"ranged", stats.ranged},
          {"body_bytes", stats.body_bytes}, {"active", stats.active},
          {"max_active", stats.max_active}, {"by_method", stats.by_method},
          {"by_status", by_status}};
}

Answer GetStats(const Request&, Service& service) {
  const Stats stats = service.stats().Snapshot();
  Json paths = Json::object();
  for (const auto& [path, entry] : stats.paths) paths[path] = PathJson(entry);
  return JsonAnswer({{"total", PathJson(stats.total)},
                     {"connections",
                      {{"accepted", stats.connections_accepted}, {"open", stats.connections_open}}},
                     {"paths", paths}});
}

Answer PostResetStats(const Request&, Service& service) {
  service.stats().Reset();
  return Done();
}

Answer GetLog(const Request&, Service& service) {
  Json list = Json::array();
  for (const LoggedRequest& logged : service.stats().Log()) {
    list.push_back({{"method", logged.method},
                    {"target", logged.target},
                    {"status", logged.status},
                    {"connection", logged.connection},
                    {"headers", logged.headers}});
  }
  return JsonAnswer(list);
}

bool SetOption(Behaviour& behaviour, const std::string& key, const std::string& value) {
  const auto number = [&value](std::uint64_t& field) {
    const auto parsed = ParseSize(value);
    if (parsed) field = *parsed;
    return parsed.has_value();
  };
  const auto flag = [&value](bool& field) {
    field = value == "true";
    return value == "true" || value == "false";
  };
  if (key == "delay_ms") return number(behaviour.delay_ms);
  if (key == "connect_delay_ms") return number(behaviour.connect_delay_ms);
  if (key == "rate") return number(behaviour.rate);
  if (key == "index") return ParseName(value, behaviour.index);
  if (key == "etag") return ParseName(value, behaviour.etag);
  if (key == "empty_range") return ParseName(value, behaviour.empty_range);
  if (key == "last_modified") return flag(behaviour.last_modified);
  if (key == "accept_ranges") return flag(behaviour.accept_ranges);
  if (key == "keep_alive") return flag(behaviour.keep_alive);
  return false;
}

Answer GetOptions(const Request&, Service& service) {
  const Behaviour b = service.behaviour();
  return JsonAnswer({{"delay_ms", b.delay_ms},
                     {"connect_delay_ms", b.connect_delay_ms},
                     {"rate", b.rate},
                     {"index", NameOf(b.index)},
                     {"etag", NameOf(b.etag)},
                     {"empty_range", NameOf(b.empty_range)},
                     {"last_modified", b.last_modified},
                     {"accept_ranges", b.accept_ranges},
                     {"keep_alive", b.keep_alive}});
}

Answer PostOptions(const Request& request, Service& service) {
  const Json json = Json::parse(request.body, nullptr, false);
  if (!json.is_object()) return BadRequest("the body is not a JSON object");
  Behaviour behaviour = service.behaviour();
  for (const auto& [key, value] : json.items()) {
    const auto text = ScalarText(value);
    if (!text || !SetOption(behaviour, key, *text)) {
      return BadRequest(fmt::format("unknown option or bad value for \"{}\"", key));
    }
  }
  service.SetBehaviour(behaviour);
  return GetOptions(request, service);
}

// {path, text} or {path, size, seed} or {path, alias}; the path is encoded as on the wire.
Answer PostFiles(const Request& request, Service& service) {
  const Json json = Json::parse(request.body, nullptr, false);
  const auto text = [&json](const char* key) {
    return json.is_object() && json.contains(key) ? ScalarText(json[key]) : std::nullopt;
  };
  const auto path = text("path");
  if (!path || path->empty() || (*path)[0] != '/')
    return BadRequest("\"path\" has to begin with /");
  if (const auto alias = text("alias")) {
    if (!alias->empty() && (*alias)[0] != '/') return BadRequest("\"alias\" has to begin with /");
    service.content().Alias(*path, *alias);
    return Done();
  }
  FileOptions options;
  options.content_type = text("content_type").value_or("");
  options.etag = text("etag").value_or("");
  if (auto bytes = text("text")) {
    service.content().AddFile(*path, std::move(*bytes), std::move(options));
    return Done();
  }
  const auto size = ParseSize(text("size").value_or(""));
  const auto seed = ParseNumber(text("seed").value_or("0"));
  if (!size || !seed) return BadRequest("\"text\", \"alias\" or \"size\" (and \"seed\") is needed");
  service.content().AddGenerated(*path, *size, *seed, std::move(options));
  return Done();
}

Answer DeleteFiles(const Request& request, Service& service) {
  const auto path = QueryParameter(request.query, "path");
  if (!path || !service.content().Remove(*path)) return TextAnswer(404, "no such file in memory\n");
  return Done();
}

struct Route {
  std::string_view method;
  std::string_view name;
  Answer (*handle)(const Request&, Service&);
};

constexpr Route kRoutes[] = {{"GET", "faults", GetFaults},
                             {"POST", "faults", PostFaults},
                             {"DELETE", "faults", DeleteFaults},
                             {"GET", "stats", GetStats},
                             {"POST", "reset-stats", PostResetStats},
                             {"GET", "log", GetLog},
                             {"GET", "options", GetOptions},
                             {"POST", "options", PostOptions},
                             {"POST", "files", PostFiles},
                             {"DELETE", "files", DeleteFiles}};

}  // namespace

bool IsControl(const Request& request) {
  return request.path.compare(0, kPrefix.size(), kPrefix) == 0;
}

ControlAnswer HandleControl(const Request& request, Service& service) {
  const std::string_view name = std::string_view(request.path).substr(kPrefix.size());
  if (request.method == "POST" && name == "go-away") {
    const auto ms = ParseNumber(QueryParameter(request.query, "ms").value_or(""));
    if (!ms) return {BadRequest("?ms=N is needed: how long to be gone"), nullptr};
    return {Done(), [&service, ms] { service.hooks().go_away(std::chrono::milliseconds(*ms)); }};
  }
  if (request.method == "POST" && name == "drop-connections") {
    return {Done(), [&service] { service.hooks().drop_connections(); }};
  }
  for (const Route& route : kRoutes) {
    if (route.method == request.method && route.name == name) {
      return {route.handle(request, service), nullptr};
    }
  }
  return {TextAnswer(404, fmt::format("no control endpoint {} /_ctl/{}\n", request.method, name)),
          nullptr};
}

}  // namespace dartfs::origin
