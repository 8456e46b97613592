#include "httpd/door.h"

#include <gtest/gtest.h>

namespace dartfs::httpd {
namespace {

Doors All() {
  Doors doors;
  doors.fixed_origin = doors.connect = doors.registry = true;
  return doors;
}

struct Row {
  const char* method;
  const char* target;
  Door door;
  const char* rest;
};

TEST(Door, ByMethodAndTarget) {
  const Row rows[] = {
      {"GET", "/dart/https://h/a%2Fb//c/../d?x=%3D", Door::kPrefix,
       "https://h/a%2Fb//c/../d?x=%3D"},
      {"HEAD", "/dart/http://h", Door::kPrefix, "http://h"},
      {"GET", "/dart/https:/h/a", Door::kPrefix, "https:/h/a"},
      {"GET", "/dart/", Door::kPrefix, ""},
      {"GET", "/dart//healthz", Door::kPrefix, "/healthz"},
      {"GET", "/dart", Door::kFixedOrigin, "/dart"},
      {"GET", "/dartx/https://h/", Door::kFixedOrigin, "/dartx/https://h/"},
      {"GET", "/Dart/https://h/", Door::kFixedOrigin, "/Dart/https://h/"},
      {"GET", "/%64art/https://h/", Door::kFixedOrigin, "/%64art/https://h/"},
      {"GET", "//dart/https://h/", Door::kFixedOrigin, "//dart/https://h/"},
      {"GET", "/", Door::kFixedOrigin, "/"},
      {"GET", "/a/http://h/", Door::kFixedOrigin, "/a/http://h/"},
      {"GET", "http://h/a?b", Door::kProxy, "http://h/a?b"},
      {"GET", "https://h/a", Door::kProxy, "https://h/a"},
      {"GET", "HTTP://h/a", Door::kProxy, "HTTP://h/a"},
      {"GET", "h/a", Door::kNone, "h/a"},
      {"GET", "://h/a", Door::kNone, "://h/a"},
      {"GET", "a/b://h", Door::kNone, "a/b://h"},
      {"CONNECT", "h:443", Door::kConnect, "h:443"},
      {"CONNECT", "/healthz", Door::kConnect, "/healthz"},
      {"OPTIONS", "*", Door::kServer, "*"},
      {"GET", "*", Door::kNone, "*"},
      {"GET", "/v2/", Door::kRegistry, "/v2/"},
      {"GET", "/v2", Door::kRegistry, "/v2"},
      {"GET", "/v2/a/blobs/sha256:0?ns=docker.io", Door::kRegistry,
       "/v2/a/blobs/sha256:0?ns=docker.io"},
      {"GET", "/v22/", Door::kFixedOrigin, "/v22/"},
      {"GET", "/healthz", Door::kAdmin, "/healthz"},
      {"GET", "/healthz?x", Door::kAdmin, "/healthz?x"},
      {"GET", "/healthzz", Door::kFixedOrigin, "/healthzz"},
      {"GET", "/metrics", Door::kAdmin, "/metrics"},
      {"GET", "/readyz", Door::kAdmin, "/readyz"},
      {"GET", "/admin/stats", Door::kAdmin, "/admin/stats"},
      {"GET", "/peer/v1/roster", Door::kPeer, "/peer/v1/roster"},
      {"GET", "/peer/v2/roster", Door::kFixedOrigin, "/peer/v2/roster"},
      {"POST", "/tracker/v1/join", Door::kPeer, "/tracker/v1/join"},
  };
  for (const Row& row : rows) {
    const Knock knock = FindDoor(row.method, row.target, All());
    EXPECT_EQ(knock.door, row.door) << row.method << " " << row.target;
    EXPECT_EQ(knock.rest, row.rest) << row.method << " " << row.target;
  }
}

TEST(Door, WhatAListenerDoesNotOfferIsNotThere) {
  Doors none;
  none.prefix = "";
  none.proxy = none.admin = none.peer = false;
  for (const char* target : {"/dart/http://h/", "//http://h/", "http://h/", "/v2/", "/healthz",
                             "/peer/v1/roster", "/"}) {
    EXPECT_EQ(FindDoor("GET", target, none).door, Door::kNone) << target;
  }
  EXPECT_EQ(FindDoor("CONNECT", "h:443", none).door, Door::kNone);
  none.fixed_origin = true;
  EXPECT_EQ(FindDoor("GET", "/healthz", none).door, Door::kFixedOrigin);
}

TEST(Door, Prefixes) {
  Doors doors;
  doors.prefix = "a.b-c_~9";
  EXPECT_EQ(FindDoor("GET", "/a.b-c_~9/http://h/", doors).rest, "http://h/");
  for (const char* usable : {"dart", "D", "a.b-c_~9", "v3", "..."}) {
    EXPECT_TRUE(IsUsablePrefix(usable)) << usable;
  }
  for (const char* not_usable : {"", ".", "..", "a/b", "a%20", "a b", "v2", "admin", "peer", "ü"}) {
    EXPECT_FALSE(IsUsablePrefix(not_usable)) << not_usable;
  }
}

}  // namespace
}  // namespace dartfs::httpd
