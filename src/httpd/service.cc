#include "httpd/service.h"

#include <utility>

#include "core/base/text.h"
#include "httpd/access_log.h"

namespace dartfs::httpd {

namespace {

Plane PlaneOf(Door door) {
  switch (door) {
    case Door::kAdmin:
      return Plane::kAdmin;
    case Door::kPeer:
      return Plane::kPeer;
    case Door::kServer:
    case Door::kNone:
      return Plane::kNone;
    default:
      return Plane::kClient;
  }
}

}  // namespace

Service::Service(ServiceOptions options, ServiceHandlers handlers)
    : options_(std::move(options)), handlers_(handlers) {
  for (size_t i = 0; i < doors_.size(); ++i) {
    Listener listener;
    listener.client = (i & 1U) != 0;
    listener.peer = (i & 2U) != 0;
    listener.admin = (i & 4U) != 0;
    doors_[i] = DoorsFor(listener);
  }
}

const Doors& Service::DoorsOf(const Listener& listener) const {
  return doors_[(listener.client ? 1U : 0U) | (listener.peer ? 2U : 0U) |
                (listener.admin ? 4U : 0U)];
}

Doors Service::DoorsFor(const Listener& listener) const {
  Doors doors = options_.doors;
  if (!listener.client || handlers_.urls == nullptr) {
    doors.prefix.clear();
    doors.fixed_origin = false;
    doors.proxy = false;
  }
  doors.registry = doors.registry && listener.client && handlers_.registry != nullptr;
  doors.connect = doors.connect && listener.client && handlers_.connect != nullptr;
  doors.admin = doors.admin && listener.admin && handlers_.admin != nullptr;
  doors.peer = doors.peer && listener.peer && handlers_.peer != nullptr;
  return doors;
}

void Service::Handle(ExchangePtr exchange) {
  const Request& request = exchange->request();
  const Knock knock = FindDoor(request.method, request.target, DoorsOf(exchange->listener()));
  exchange->note().plane = PlaneOf(knock.door);
  exchange->note().trace_id = TraceIdOf(request.Find("traceparent").value_or(""));
  if (knock.door != Door::kPeer) {
    if (auto refusal = CheckClient(request, knock.door, options_.policy)) {
      return exchange->RespondText(std::move(refusal->head), std::move(refusal->text));
    }
  }
  Pass(std::move(exchange), knock);
}

bool Service::ServesWhenFull(const Request& request, const Listener& listener) const {
  return FindDoor(request.method, request.target, DoorsOf(listener)).door == Door::kAdmin;
}

void Service::Pass(ExchangePtr exchange, const Knock& knock) {
  switch (knock.door) {
    case Door::kPrefix:
    case Door::kFixedOrigin:
    case Door::kProxy:
      return handlers_.urls->Handle(std::move(exchange), knock);
    case Door::kRegistry:
      return handlers_.registry->Handle(std::move(exchange));
    case Door::kConnect:
      return handlers_.connect->Handle(std::move(exchange));
    case Door::kAdmin:
      return handlers_.admin->Handle(std::move(exchange));
    case Door::kPeer:
      return handlers_.peer->Handle(std::move(exchange));
    case Door::kServer:
      return RespondOptions(std::move(exchange));
    case Door::kNone:
      return RespondNothing(std::move(exchange));
  }
}

void Service::RespondOptions(ExchangePtr exchange) const {
  ResponseHead head;
  head.Add("Allow", "GET, HEAD, OPTIONS");
  exchange->Respond(std::move(head));
}

// What would have been right depends on what was asked for.
void Service::RespondNothing(ExchangePtr exchange) const {
  const Request& request = exchange->request();
  if (request.method == "CONNECT") {
    return exchange->RespondText(
        403, "no tunnels are made here: start the node with --connect to allow them\n");
  }
  const std::string path =
      core::EscapeForeign(std::string_view(request.target).substr(0, request.target.find('?')));
  std::string text = "nothing here answers to " + path;
  if (!options_.doors.prefix.empty() && exchange->listener().client) {
    text += "; the cache serves any URL as /" + options_.doors.prefix + "/<URL>";
  }
  exchange->RespondText(404, text + "\n");
}

}  // namespace dartfs::httpd
