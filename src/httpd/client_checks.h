// What is refused of a request before anybody looks at what it asks for: methods, bodies, names
// that are not ours, pages of other sites, our own requests come back (CLIENTS.md). Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "httpd/door.h"
#include "httpd/request.h"
#include "httpd/response.h"

namespace dartfs::httpd {

struct ClientPolicy {
  // Names under which this listener may be called, beside addresses and "localhost"; a port in the
  // request is not looked at.
  std::vector<std::string> hosts;
  std::string via_id;  // tells this node from others in Via, as it is sent to origins
};

struct Refusal {
  ResponseHead head;
  std::string text;  // a line for people
};

// nullopt: the request may go on.
std::optional<Refusal> CheckClient(const Request& request, Door door, const ClientPolicy& policy);

// What a node adds to its requests of origins: "1.1 dartfs (id)".
std::string ViaOf(const std::string& via_id);

}  // namespace dartfs::httpd
