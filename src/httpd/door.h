// Which service of a listener a request is for, by its method and its target as they came: the
// planes share a port, and nothing of a target is decoded or cleaned to tell them apart. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dartfs::httpd {

enum class Door : uint8_t {
  kPrefix,       // /<prefix>/<full URL>
  kFixedOrigin,  // any path of the one origin
  kProxy,        // absolute-form
  kConnect,      // authority-form
  kRegistry,     // /v2/...
  kAdmin,        // /healthz, /readyz, /metrics, /admin/...
  kPeer,         // /peer/v1/..., /tracker/v1/... (WIRE.md sections 4 to 7)
  kServer,       // OPTIONS *
  kNone,         // nothing here answers that
};

// What a listener offers.
struct Doors {
  std::string prefix = "dart";  // empty: no prefix API
  bool fixed_origin = false;
  bool proxy = true;
  bool connect = false;
  bool registry = false;
  bool admin = true;
  bool peer = true;
};

struct Knock {
  Door door = Door::kNone;
  // kPrefix and kProxy: the URL, byte for byte, its query with it. kConnect: host and port. Else
  // the target. Borrowed from the target.
  std::string_view rest;
};

Knock FindDoor(std::string_view method, std::string_view target, const Doors& doors);

// A prefix is one path segment of letters, digits and "-._~", and not the name of another door.
bool IsUsablePrefix(std::string_view prefix);

}  // namespace dartfs::httpd
