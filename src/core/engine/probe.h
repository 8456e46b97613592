// The request behind Resolver: one GET of bytes=0-0, its answer read by admission.h's rules. Part
// of the engine; not for other layers.
#pragma once

#include <memory>
#include <string>

#include "core/base/url.h"
#include "core/engine/admission.h"
#include "core/engine/flight_env.h"
#include "core/io/http_client.h"

namespace dartfs::core {

struct ProbeRequest {
  Url url;
  std::string what;  // for errors: "GET <redacted>"
  std::string authorization;
  std::string known_version;  // makes the request conditional; empty or a version text
  std::string known_etag;     // of that version, as sent
  bool fixed = false;         // content-addressed or declared immutable
  bool untrusted_url = false;
  bool pass_redirects = false;  // kRedirected where the URL answers with one
  // Runs on the transfer thread once the origin turns out to ignore ranges; must not block. False:
  // nobody wants to know more, and the probe ends with kRangeBlind.
  UniqueFunction<bool()> range_blind;
};

using ProbeDone = UniqueFunction<void(Result<ProbeFacts>)>;

// `done` runs once, on a transfer thread. A range-blind object whose length is not stated is read
// once, to count its bytes (up to the spool limit: kTooLarge). kIsDirectory: redirected to itself
// plus "/". kStale: a 304 to this conditional request that names another version; only a request
// without `known_version` can tell which. kBadResponse: a 304 to a request without a condition.
std::shared_ptr<HttpCall> StartProbe(FlightEnv& env, HttpClient& http, ProbeRequest request,
                                     ProbeDone done);

}  // namespace dartfs::core
