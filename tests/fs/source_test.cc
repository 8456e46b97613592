#include "fs/source.h"

#include <gtest/gtest.h>

#include <string>

namespace dartfs::fs {
namespace {

TEST(ParseSource, Forms) {
  const struct {
    const char* text;
    SourceKind kind;
    const char* rest;  // URL or path
  } rows[] = {
      {"http://h/d/", SourceKind::kUrl, "http://h/d/"},
      {"HTTPS://u:p@H/d", SourceKind::kUrl, "https://h/d"},
      {"catalog:/etc/images.tsv", SourceKind::kCatalog, "/etc/images.tsv"},
      {"catalog:/a b/ü:x", SourceKind::kCatalog, "/a b/ü:x"},
      {"any", SourceKind::kAny, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto source = ParseSource(row.text);
    ASSERT_TRUE(source) << source.error().ToString();
    EXPECT_EQ(source->kind, row.kind);
    EXPECT_EQ(row.kind == SourceKind::kUrl ? source->url.ToString() : source->path, row.rest);
  }
}

TEST(ParseSource, WhatIsWrongSaysWhatIsRight) {
  const struct {
    const char* text;
    const char* says;
  } rows[] = {
      {"", "catalog:/PATH or any"},         {"/etc/images.tsv", "catalog:/PATH or any"},
      {"ftp://h/", "catalog:/PATH or any"}, {"ANY", "catalog:/PATH or any"},
      {"any/", "catalog:/PATH or any"},     {"catalog:images.tsv", "absolute path"},
      {"catalog:", "absolute path"},        {"http://h/d/?x=secret", "can't have a query"},
      {"http://u:secret@/d/", "host"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto source = ParseSource(row.text);
    ASSERT_FALSE(source);
    EXPECT_EQ(source.error().code, core::Code::kInvalidArgument);
    EXPECT_NE(source.error().context.find(row.says), std::string::npos) << source.error().context;
    EXPECT_EQ(source.error().context.find("secret"), std::string::npos) << source.error().context;
  }
}

}  // namespace
}  // namespace dartfs::fs
