#include "httpd/registry_path.h"

#include <gtest/gtest.h>

#include <string>

namespace dartfs::httpd {
namespace {

const std::string kHex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kDigest = "sha256:" + kHex;

struct Row {
  std::string target;
  RegistryRoute route;
  std::string name;
  std::string reference;
  std::string scope;
};

TEST(RegistryPath, Routes) {
  const std::string pull_a = "repository:a:pull";
  const Row rows[] = {
      {"/v2", RegistryRoute::kBase, "", "", ""},
      {"/v2/", RegistryRoute::kBase, "", "", ""},
      {"/v2/_catalog?n=10", RegistryRoute::kCatalog, "", "", "registry:catalog:*"},
      {"/v2/a/blobs/" + kDigest, RegistryRoute::kBlob, "a", kDigest, pull_a},
      {"/v2/a/blobs/sha512:" + kHex + kHex, RegistryRoute::kBlob, "a", "sha512:" + kHex + kHex,
       pull_a},
      {"/v2/a/blobs/blake3:A-_=9", RegistryRoute::kBlob, "a", "blake3:A-_=9", pull_a},
      {"/v2/a/b-c/d.e/f__g/blobs/" + kDigest, RegistryRoute::kBlob, "a/b-c/d.e/f__g", kDigest,
       "repository:a/b-c/d.e/f__g:pull"},
      {"/v2/a/manifests/latest", RegistryRoute::kManifest, "a", "latest", pull_a},
      {"/v2/a/manifests/_V1.2-x", RegistryRoute::kManifest, "a", "_V1.2-x", pull_a},
      {"/v2/a/manifests/" + kDigest, RegistryRoute::kManifest, "a", kDigest, pull_a},
      {"/v2/a/tags/list?n=2&last=x%20y", RegistryRoute::kTags, "a", "list", pull_a},
      {"/v2/a/referrers/" + kDigest, RegistryRoute::kReferrers, "a", kDigest, pull_a},
      {"/v2/a/blobs/uploads/", RegistryRoute::kUploads, "a", "", pull_a},
      {"/v2/a/blobs/uploads", RegistryRoute::kUploads, "a", "uploads", pull_a},
      {"/v2/a/blobs/uploads/6b3-F", RegistryRoute::kUploads, "a", "6b3-F", pull_a},
      {"/v2/tags/list/tags/list", RegistryRoute::kTags, "tags/list", "list",
       "repository:tags/list:pull"},
      {"/v2/a/manifests/manifests/blobs", RegistryRoute::kManifest, "a/manifests", "blobs",
       "repository:a/manifests:pull"},
      {"/v2/a/_extension/x", RegistryRoute::kOther, "", "", ""},
      {"/v2/a/tags/other", RegistryRoute::kOther, "", "", ""},
      {"/v2/manifests/x", RegistryRoute::kOther, "", "", ""},
      {"/v2/a", RegistryRoute::kOther, "", "", ""},
      {"/v2/a/", RegistryRoute::kOther, "", "", ""},
  };
  for (const Row& row : rows) {
    const auto parsed = ParseRegistryPath(row.target);
    const auto* path = std::get_if<RegistryPath>(&parsed);
    ASSERT_NE(path, nullptr) << row.target << " " << std::get<RegistryFault>(parsed).why;
    EXPECT_EQ(path->route, row.route) << row.target;
    EXPECT_EQ(path->name, row.name) << row.target;
    EXPECT_EQ(path->reference, row.reference) << row.target;
    EXPECT_EQ(path->Scope(), row.scope) << row.target;
    EXPECT_EQ(path->target, row.target == "/v2" ? "/v2/" : row.target);
    EXPECT_EQ(path->ns, std::nullopt) << row.target;
  }
}

struct BadRow {
  std::string target;
  std::string code;
};

TEST(RegistryPath, WhatCannotBeMeantIsAFault) {
  const BadRow rows[] = {
      {"/v2/A/manifests/x", "NAME_INVALID"},
      {"/v2/a../manifests/x", "NAME_INVALID"},
      {"/v2/a___b/manifests/x", "NAME_INVALID"},
      {"/v2/-a/manifests/x", "NAME_INVALID"},
      {"/v2/a-/manifests/x", "NAME_INVALID"},
      {"/v2/a//b/manifests/x", "NAME_INVALID"},
      {"/v2//manifests/x", "NAME_INVALID"},
      {"/v2/a%2Fb/manifests/x", "NAME_INVALID"},
      {"/v2/../manifests/x", "NAME_INVALID"},
      {"/v2/a/../../b", "NAME_INVALID"},
      {"/v2/./a", "NAME_INVALID"},
      {"/v2//", "NAME_INVALID"},
      {"/v2/%2e%2e/x", "NAME_INVALID"},
      {"/v2/x\\y", "NAME_INVALID"},
      {"/v2/a/tags/list#x", "NAME_INVALID"},
      {"/v2/a/tags/list?x#y", "NAME_INVALID"},
      {"/v22/a", "NAME_INVALID"},
      {"/v2/" + std::string(256, 'a') + "/manifests/x", "NAME_INVALID"},
      {"/v2/a/blobs/uploads/..", "NAME_INVALID"},
      {"/v2/a/manifests/", "TAG_INVALID"},
      {"/v2/a/manifests/.x", "TAG_INVALID"},
      {"/v2/a/manifests/-x", "TAG_INVALID"},
      {"/v2/a/manifests/x%3A", "TAG_INVALID"},
      {"/v2/a/manifests/" + std::string(129, 'x'), "TAG_INVALID"},
      {"/v2/a/manifests/sha256:" + kHex.substr(1), "DIGEST_INVALID"},
      {"/v2/a/manifests/x:y:z", "DIGEST_INVALID"},
      {"/v2/a/blobs/" + kHex, "DIGEST_INVALID"},
      {"/v2/a/blobs/sha256%3A" + kHex, "DIGEST_INVALID"},
      {"/v2/a/blobs/sha256:" + kHex.substr(1) + "F", "DIGEST_INVALID"},
      {"/v2/a/blobs/SHA256:" + kHex, "DIGEST_INVALID"},
      {"/v2/a/blobs/x:", "DIGEST_INVALID"},
      {"/v2/a/blobs/:x", "DIGEST_INVALID"},
      {"/v2/a/referrers/latest", "DIGEST_INVALID"},
  };
  for (const BadRow& row : rows) {
    const auto parsed = ParseRegistryPath(row.target);
    const auto* fault = std::get_if<RegistryFault>(&parsed);
    ASSERT_NE(fault, nullptr) << row.target;
    EXPECT_EQ(fault->code, row.code) << row.target;
  }
}

struct NamespaceRow {
  const char* query;
  const char* ns;  // nullptr: a fault
  const char* rest;
};

TEST(RegistryPath, NamespaceIsTakenOutOfTheQuery) {
  const NamespaceRow rows[] = {
      {"?ns=docker.io", "docker.io", ""},
      {"?ns=Docker.IO", "docker.io", ""},
      {"?ns=h%3A5000", "h:5000", ""},
      {"?ns=h:5000", "h:5000", ""},
      {"?ns=%5B::1%5D:5000", "[::1]:5000", ""},
      {"?n=1&ns=h&last=a%2fb&x", "h", "?n=1&last=a%2fb&x"},
      {"?ns=h&n=1", "h", "?n=1"},
      {"?ns=h&ns=H", "h", ""},
      {"?ns=h&&x", "h", "?&x"},
      {"?ns=", nullptr, ""},
      {"?ns=h&ns=i", nullptr, ""},
      {"?ns=h/x", nullptr, ""},
      {"?ns=h%2Fx", nullptr, ""},
      {"?ns=u@h", nullptr, ""},
      {"?ns=u%40h", nullptr, ""},
      {"?ns=h:", nullptr, ""},
      {"?ns=h:0", nullptr, ""},
      {"?ns=h%3Fx", nullptr, ""},
      {"?ns=h%23x", nullptr, ""},
      {"?ns=h%0d%0a", nullptr, ""},
      {"?ns=h%", nullptr, ""},
      {"?ns=https://h", nullptr, ""},
  };
  for (const NamespaceRow& row : rows) {
    const auto parsed = ParseRegistryPath(std::string("/v2/a/tags/list") + row.query);
    const auto* path = std::get_if<RegistryPath>(&parsed);
    ASSERT_EQ(path != nullptr, row.ns != nullptr) << row.query;
    if (path == nullptr) continue;
    EXPECT_EQ(path->ns, row.ns) << row.query;
    EXPECT_EQ(path->target, std::string("/v2/a/tags/list") + row.rest) << row.query;
  }
}

TEST(RegistryPath, OtherParametersKeepTheirBytes) {
  const auto parsed = ParseRegistryPath("/v2/a/tags/list?nsx=1&n%73=h&NS=h&last=%2F+%zz");
  const auto& path = std::get<RegistryPath>(parsed);
  EXPECT_EQ(path.ns, std::nullopt);
  EXPECT_EQ(path.target, "/v2/a/tags/list?nsx=1&n%73=h&NS=h&last=%2F+%zz");
}

TEST(RegistryPath, LongestNameAndTag) {
  const std::string name = "a/" + std::string(253, 'b');
  const std::string tag(128, 'T');
  const auto parsed = ParseRegistryPath("/v2/" + name + "/manifests/" + tag);
  EXPECT_EQ(std::get<RegistryPath>(parsed).name, name);
  EXPECT_EQ(std::get<RegistryPath>(parsed).reference, tag);
}

}  // namespace
}  // namespace dartfs::httpd
