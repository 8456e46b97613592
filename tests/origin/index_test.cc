#include "origin/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dartfs::origin {
namespace {

using testing::HasSubstr;
using testing::Not;

// 2024-02-03 04:05:06
constexpr std::time_t kTime = 1706933106;

std::vector<DirectoryEntry> Entries() {
  return {{"a&b?.img", false, 123456, kTime, "\"e\""},
          {"c:d", false, 7, kTime, "\"e\""},
          {"sub dir", true, 0, kTime, ""}};
}

std::string Render(IndexFormat format) { return RenderIndex(format, "/p%20q/", Entries()).body; }

TEST(IndexTest, Nginx) {
  const std::string html = Render(IndexFormat::kNginx);
  EXPECT_THAT(html, HasSubstr("<title>Index of /p q/</title>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"../\">../</a>\r\n<a href=\"sub%20dir/\">sub dir/</a> "));
  EXPECT_THAT(html, HasSubstr("<a href=\"a%26b%3F.img\">a&amp;b?.img</a>"));
  EXPECT_THAT(html, HasSubstr(" 03-Feb-2024 04:05              123456\r\n"));
  EXPECT_THAT(html, HasSubstr("href=\"c%3Ad\""));
}

TEST(IndexTest, NginxCutsLongNamesButNotTheirLinks) {
  const std::string name(80, 'n');
  const std::string html =
      RenderIndex(IndexFormat::kNginx, "/", {{name, false, 1, kTime, ""}}).body;
  EXPECT_THAT(html, HasSubstr("href=\"" + name + "\">" + std::string(47, 'n') + "..&gt;</a>"));
}

TEST(IndexTest, Apache) {
  const std::string html = Render(IndexFormat::kApache);
  EXPECT_THAT(html, HasSubstr("<title>Index of /p q</title>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"?C=N;O=D\">"));
  EXPECT_THAT(html, HasSubstr(">Parent Directory</a>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"./c:d\">c:d</a>"));
  EXPECT_THAT(html, HasSubstr("2024-02-03 04:05"));
  EXPECT_THAT(html, HasSubstr(">121K</td>"));
}

TEST(IndexTest, Python) {
  const std::string html = Render(IndexFormat::kPython);
  EXPECT_THAT(html, HasSubstr("<title>Directory listing for /p q/</title>"));
  EXPECT_THAT(html, HasSubstr("<li><a href=\"a%26b%3F.img\">a&amp;b?.img</a></li>"));
  EXPECT_THAT(html, HasSubstr("<li><a href=\"sub%20dir/\">sub dir/</a></li>"));
}

TEST(IndexTest, Json) {
  const Listing listing = RenderIndex(
      IndexFormat::kJson, "/", {{"a\"\\\x01\xff", false, 5, kTime, ""}, {"d", true, 0, kTime, ""}});
  EXPECT_EQ(listing.content_type, "application/json");
  EXPECT_EQ(
      listing.body,
      "[\r\n{ \"name\":\"d\", \"type\":\"directory\", \"mtime\":\"Sat, 03 Feb 2024 04:05:06 GMT\""
      " },\r\n{ \"name\":\"a\\\"\\\\\\u0001\xff\", \"type\":\"file\", "
      "\"mtime\":\"Sat, 03 Feb 2024 04:05:06 GMT\", \"size\":5 }\r\n]\r\n");
}

class S3Test : public testing::Test {
 protected:
  S3Test() : content_("") {
    for (const char* path : {"/b/a", "/b/d/x", "/b/d/y", "/b/e%20f", "/b/%3Cz"}) {
      content_.AddFile(path, "12345");
    }
  }
  std::string List(std::string_view query) { return RenderS3(content_, "/b/", query).body; }
  Content content_;
};

TEST_F(S3Test, RecursiveWithoutDelimiter) {
  const std::string xml = List("list-type=2");
  EXPECT_THAT(xml, HasSubstr("<Name>b</Name><Prefix></Prefix><KeyCount>5</KeyCount>"));
  EXPECT_THAT(xml, HasSubstr("<Key>d/x</Key>"));
  EXPECT_THAT(xml, HasSubstr("<Key>e f</Key>"));
  EXPECT_THAT(xml, HasSubstr("<Key>&lt;z</Key>"));
  EXPECT_THAT(xml, HasSubstr("<Size>5</Size>"));
  EXPECT_THAT(xml, Not(HasSubstr("CommonPrefixes")));
}

TEST_F(S3Test, DelimiterAndPrefix) {
  const std::string root = List("list-type=2&delimiter=/");
  EXPECT_THAT(root, HasSubstr("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"));
  EXPECT_THAT(root, Not(HasSubstr("d/x")));
  const std::string below = List("list-type=2&delimiter=%2F&prefix=d%2F");
  EXPECT_THAT(below, HasSubstr("<KeyCount>2</KeyCount>"));
  EXPECT_THAT(below, HasSubstr("<Key>d/y</Key>"));
  EXPECT_THAT(List("list-type=2&prefix=d/x"), HasSubstr("<KeyCount>1</KeyCount>"));
  EXPECT_THAT(List("list-type=2&prefix=none/"), HasSubstr("<KeyCount>0</KeyCount>"));
}

TEST_F(S3Test, UrlEncoding) {
  EXPECT_THAT(List("list-type=2&encoding-type=url"), HasSubstr("<Key>e%20f</Key>"));
}

TEST_F(S3Test, Pages) {
  std::string query = "list-type=2&delimiter=/&max-keys=2";
  std::string keys;
  int pages = 0;
  for (std::string more = query; !more.empty(); ++pages) {
    const std::string xml = List(more);
    more.clear();
    for (std::size_t at = 0; (at = xml.find("<Key>", at)) != std::string::npos; ++at) {
      keys += xml.substr(at + 5, xml.find('<', at + 5) - at - 5) + ",";
    }
    if (xml.find("<Prefix>d/") != std::string::npos) keys += "d/,";
    const std::string tag = "<NextContinuationToken>";
    if (const std::size_t at = xml.find(tag); at != std::string::npos) {
      EXPECT_THAT(xml, HasSubstr("<IsTruncated>true"));
      const std::size_t begin = at + tag.size();
      more = query + "&continuation-token=" + xml.substr(begin, xml.find('<', begin) - begin);
    }
    ASSERT_LT(pages, 10);
  }
  EXPECT_EQ(keys, "&lt;z,a,e f,d/,");
  EXPECT_EQ(pages, 2);
}

}  // namespace
}  // namespace dartfs::origin
