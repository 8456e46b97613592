#include "fs/listing.h"

#include <gtest/gtest.h>

#include <string>

namespace dartfs::fs {
namespace {

using core::Code;
using core::Url;

Url At(const std::string& url) { return core::ParseUrl(url).value(); }

ListedChild File(std::string segment) { return {std::move(segment), EntryKind::kFile, {}, {}}; }
ListedChild Dir(std::string segment) { return {std::move(segment), EntryKind::kDirectory, {}, {}}; }

std::vector<ListedChild> Html(std::string_view body, const std::string& url = "http://h/d/") {
  auto listing = ParseListing("text/html", body, At(url));
  EXPECT_TRUE(listing) << listing.error().ToString();
  return listing ? listing->children : std::vector<ListedChild>{};
}

constexpr std::string_view kNginx =
    "<html>\r\n<head><title>Index of /d/</title></head>\r\n<body>\r\n"
    "<h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\r\n"
    "<a href=\"sub/\">sub/</a>          29-Nov-2026 19:27                   -\r\n"
    "<a href=\"a%20%281%29\">a (1)</a>  29-Nov-2026 19:27                   7\r\n"
    "<a href=\"a%26b\">a&amp;b</a>      29-Nov-2026 19:27                   0\r\n"
    "<a href=\"bad%FF\">bad\xFF</a>     29-Nov-2026 19:27                   0\r\n"
    "</pre><hr></body>\r\n</html>\r\n";

TEST(Listing, Nginx) {
  const auto listing = ParseListing("text/html", kNginx, At("http://h/d/"));
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->index);
  EXPECT_FALSE(listing->cut);
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{Dir("sub"), File("a%20%281%29"),
                                                         File("a%26b"), File("bad%FF")}));
}

TEST(Listing, ApacheTableWithoutSortLinksAndParent) {
  const auto listing = ParseListing(
      "text/html;charset=ISO-8859-1",
      "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" "
      "\"http://www.w3.org/TR/html4/strict.dtd\">\n"
      "<html>\n <head>\n  <title>Index of /d</title>\n </head>\n <body>\n<h1>Index of /d</h1>\n"
      "  <table>\n   <tr><th valign=\"top\">&nbsp;</th><th><a href=\"?C=N;O=D\">Name</a></th>"
      "<th><a href=\"?C=M;O=A\">Last modified</a></th></tr>\n"
      "<tr><td>&nbsp;</td><td><a href=\"/\">Parent Directory</a></td></tr>\n"
      "<tr><td>&nbsp;</td><td><a href=\"a(1).txt\">a(1).txt</a></td><td>  0 </td></tr>\n"
      "<tr><td>&nbsp;</td><td><a href=\"./a:b\">a:b</a></td><td>  0 </td></tr>\n"
      "<tr><td>&nbsp;</td><td><a href=\"a&amp;b\">a&amp;b</a></td><td>1.5K</td></tr>\n"
      "<tr><td>&nbsp;</td><td><a href=\"caf%c3%a9/\">caf\xC3\xA9/</a></td><td>  - </td></tr>\n"
      "</table>\n</body></html>\n",
      At("http://h/d/"));
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->index);
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{File("a(1).txt"), File("a:b"), File("a&b"),
                                                         Dir("caf%c3%a9")}));
}

TEST(Listing, Python) {
  const auto listing =
      ParseListing("text/html; charset=utf-8",
                   "<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<title>Directory listing for /d/</title>\n</head>\n<body>\n"
                   "<h1>Directory listing for /d/</h1>\n<hr>\n<ul>\n"
                   "<li><a href=\".hidden\">.hidden</a></li>\n<li><a href=\"a%2Bb\">a+b</a></li>\n"
                   "<li><a href=\"sub/\">sub/</a></li>\n</ul>\n<hr>\n</body>\n</html>\n",
                   At("http://h/d/"));
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->index);
  EXPECT_EQ(listing->children,
            (std::vector<ListedChild>{File(".hidden"), File("a%2Bb"), Dir("sub")}));
}

TEST(Listing, OnlyDirectChildrenOfTheSameOrigin) {
  struct Row {
    const char* what;
    std::string href;
    std::vector<ListedChild> want;
  };
  const Row rows[] = {
      {"relative", "x", {File("x")}},
      {"absolute path", "/d/x", {File("x")}},
      {"absolute URL", "http://h/d/x/", {Dir("x")}},
      {"default port", "http://h:80/d/x", {File("x")}},
      {"no scheme", "//h/d/x", {File("x")}},
      {"fragment", "x#top", {File("x")}},
      {"directory spelt in another way", "/%64/x", {File("x")}},
      {"dot segment", "./x", {File("x")}},
      {"in and out", "y/../x", {File("x")}},
      {"spaces around", " \n x\t ", {File("x")}},
      {"space within", "a b", {File("a%20b")}},
      {"UTF-8 as it is", "\xC3\xA9", {File("%C3%A9")}},
      {"byte that is not UTF-8", "\xE9", {File("%E9")}},
      {"character reference", "&#233;&eacute;", {File("%C3%A9%C3%A9")}},
      {"bare percent", "100%", {File("100%")}},
      {"escaped slash", "a%2Fb", {File("a%2Fb")}},
      {"itself", "./", {}},
      {"empty", "", {}},
      {"fragment alone", "#x", {}},
      {"parent", "../", {}},
      {"parent by path", "/", {}},
      {"sibling", "../e/x", {}},
      {"directory as a file", "../d", {}},
      {"grandchild", "x/y", {}},
      {"grandchild directory", "x/y/", {}},
      {"empty segment", ".//", {}},
      {"query", "x?C=N;O=D", {}},
      {"empty query", "x?", {}},
      {"other host", "http://evil/d/x", {}},
      {"other port", "http://h:81/d/x", {}},
      {"other scheme", "https://h/d/x", {}},
      {"script", "javascript:alert(1)", {}},
      {"mail", "mailto:a@b", {}},
      {"escaped dot dot", "%2e%2E/", {}},
      {"escaped climb", "..%2fx", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(Html("<a href=\"" + row.href + "\">x</a>"), row.want);
  }
}

TEST(Listing, BaseElementAndPageAddressCount) {
  EXPECT_EQ(Html("<base href=/d/><a href=x>x</a>", "http://h/d/index.html"),
            (std::vector<ListedChild>{File("x")}));
  EXPECT_EQ(Html("<base href='http://evil/d/'><a href=x>x</a>"), std::vector<ListedChild>{});
  EXPECT_EQ(Html("<base href=/e/><a href=x>x</a><a href=/d/y>y</a>"),
            (std::vector<ListedChild>{File("y")}));
}

TEST(Listing, AnOrdinaryPageIsUsableButNoIndex) {
  const auto listing =
      ParseListing("text/html", "<title>My files</title><p>Get <A HREF='disk.img'>the disk</A>",
                   At("http://h/d/"));
  ASSERT_TRUE(listing);
  EXPECT_FALSE(listing->index);
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{File("disk.img")}));
}

TEST(Listing, BrokenHtmlIsReadAsFarAsItGoes) {
  EXPECT_EQ(Html("<a href=x>x<a href=\"y\">y</td></b><a href='z"),
            (std::vector<ListedChild>{File("x"), File("y")}));
  EXPECT_EQ(Html("<!-- <a href=x> --><a href=y>"), (std::vector<ListedChild>{File("y")}));
  EXPECT_EQ(Html(std::string_view("<a \0href=x>\0<a href=y>", 23)),
            (std::vector<ListedChild>{File("x"), File("y")}));
}

TEST(Listing, MetaCharsetDoesNotChangeLinks) {
  EXPECT_EQ(Html("<meta charset=utf-16><meta http-equiv=Content-Type content='text/html; "
                 "charset=shift_jis'><a href=\xC3\xA9>"),
            (std::vector<ListedChild>{File("%C3%A9")}));
}

TEST(Listing, DepthAndEntriesAreBounded) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<div>";
  for (int i = 0; i < 100000; ++i) deep += "</b>";
  const auto listing = ParseListing("text/html", deep, At("http://h/d/"));
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->cut);

  std::string many;
  for (size_t i = 0; i < kMaxListingEntries + 5; ++i) {
    many += "<a href=f" + std::to_string(i) + ">";
  }
  // The links nest: HTML ends an <a> at the next one.
  const auto cut = ParseListing("text/html", many, At("http://h/d/"));
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->cut);
  EXPECT_EQ(cut->children.size(), kMaxListingEntries);

  const auto huge =
      ParseListing("text/html", std::string(kMaxListingBytes + 1, ' '), At("http://h/"));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Code::kTooLarge);
}

TEST(Listing, NginxJson) {
  const auto listing = ParseListing(
      "application/json",
      "[\r\n{ \"name\":\"sub\", \"type\":\"directory\", \"mtime\":\"Sun, 29 Nov 2026 19:27:49 "
      "GMT\" },\r\n"
      "{ \"name\":\"a b+%\\u00e9\", \"type\":\"file\", \"mtime\":\"Thu, 01 Jan 1970 00:00:07 "
      "GMT\", "
      "\"size\":6 },\r\n"
      "{ \"name\":\"bad\xFF\xC3\xA9\\\\x\", \"type\":\"file\", \"size\":18446744073709551615 },\r\n"
      "{ \"name\":\"sock\", \"type\":\"other\" },\r\n"
      "{ \"name\":\"..\", \"type\":\"directory\" }, { \"name\":\"\", \"type\":\"file\" },\r\n"
      "{ \"name\":\"odd\", \"type\":\"file\", \"size\":-1, \"mtime\":5, \"x\":{\"name\":\"y\"} "
      "}\r\n]",
      At("http://h/d/"));
  ASSERT_TRUE(listing) << listing.error().ToString();
  EXPECT_TRUE(listing->index);
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{
                                   {"sub", EntryKind::kDirectory, {}, 1795980469},
                                   {"a%20b+%25%C3%A9", EntryKind::kFile, 6, 7},
                                   {"bad%FF%C3%A9%5Cx", EntryKind::kFile, UINT64_MAX, {}},
                                   {"odd", EntryKind::kFile, {}, {}},
                               }));
}

TEST(Listing, JsonThatIsNoListing) {
  for (const std::string& body :
       {std::string("{}"), std::string("7"), std::string(""), std::string("[{"), std::string("[]x"),
        std::string(100000, '[')}) {
    SCOPED_TRACE(body.substr(0, 10));
    const auto listing = ParseListing("application/json", body, At("http://h/"));
    ASSERT_FALSE(listing);
    EXPECT_EQ(listing.error().code, Code::kBadResponse);
  }
  EXPECT_TRUE(ParseListing("application/json", "[]", At("http://h/"))->children.empty());
}

constexpr std::string_view kS3Head =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>";

TEST(Listing, S3) {
  const std::string body =
      std::string(kS3Head) +
      "<Prefix>p/</Prefix><Delimiter>/</Delimiter><EncodingType>url</EncodingType>"
      "<NextContinuationToken>1/tok+en==</NextContinuationToken><IsTruncated>true</IsTruncated>"
      "<Contents><Key>p/</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><Size>0</Size></"
      "Contents>"
      "<Contents><Key>p/a+b%2Bc%25</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
      "<ETag>&quot;x&quot;</ETag><Size>434234</Size></Contents>"
      "<Contents><Key>other/x</Key><Size>1</Size></Contents>"
      "<CommonPrefixes><Prefix>p/sub/</Prefix></CommonPrefixes>"
      "<CommonPrefixes><Prefix>p//</Prefix><Prefix>p/%C3%A9/</Prefix></CommonPrefixes>"
      "</ListBucketResult>";
  const auto listing = ParseListing("application/xml", body, At("http://h/b/"));
  ASSERT_TRUE(listing) << listing.error().ToString();
  EXPECT_EQ(listing->format, ListingFormat::kS3);
  EXPECT_EQ(listing->s3_prefix, "p/");
  EXPECT_EQ(listing->s3_next, "1/tok+en==");
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{
                                   {"a%20b%2Bc%25", EntryKind::kFile, 434234, 1255369830},
                                   Dir("sub"),
                                   Dir(""),
                                   Dir("%C3%A9"),
                               }));
}

TEST(Listing, S3WithoutDelimiterOrEncoding) {
  const auto listing =
      ParseListing("text/xml",
                   std::string(kS3Head) +
                       "<Prefix/><IsTruncated>false</IsTruncated><Contents><Key>a&amp;+%20</"
                       "Key><Size>x</Size></Contents>"
                       "<Contents><Key>d/1</Key></Contents><Contents><Key>d/e/2</Key></Contents></"
                       "ListBucketResult>",
                   At("http://h/"));
  ASSERT_TRUE(listing) << listing.error().ToString();
  EXPECT_EQ(listing->children, (std::vector<ListedChild>{File("a%26%2B%2520"), Dir("d")}));
  EXPECT_FALSE(listing->cut);
  EXPECT_EQ(listing->s3_next, "");
}

TEST(Listing, XmlThatIsRefused) {
  const std::pair<const char*, std::string> rows[] = {
      {"error document", "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>"},
      {"not well-formed", std::string(kS3Head) + "<Contents>"},
      {"empty", ""},
      {"HTML", "<!DOCTYPE html><html><a href=x>"},
      {"external DTD", "<!DOCTYPE x SYSTEM \"http://127.0.0.1:1/x\"><ListBucketResult/>"},
      {"entity bomb",
       "<!DOCTYPE x [<!ENTITY a \"aaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>"
       "<ListBucketResult><Contents><Key>&b;</Key></Contents></ListBucketResult>"},
      {"unknown entity", "<ListBucketResult><Name>&foo;</Name></ListBucketResult>"},
      {"long value",
       "<ListBucketResult><Name>" + std::string(20000, 'x') + "</Name></ListBucketResult>"},
  };
  for (const auto& [what, body] : rows) {
    SCOPED_TRACE(what);
    const auto listing = ParseListing("application/xml", body, At("http://h/"));
    ASSERT_FALSE(listing);
    EXPECT_EQ(listing.error().code, Code::kBadResponse);
  }
  std::string deep = "<ListBucketResult>";
  for (int i = 0; i < 10000; ++i) deep += "<a>";
  EXPECT_FALSE(ParseListing("application/xml", deep, At("http://h/")));
}

TEST(Listing, TypesAndSniffing) {
  const auto is = [](std::string_view type, std::string_view body) -> std::optional<ListingFormat> {
    const auto listing = ParseListing(type, body, At("http://h/"));
    if (!listing) return std::nullopt;
    return listing->format;
  };
  EXPECT_EQ(is("TEXT/HTML ; charset=x", "<a href=x>"), ListingFormat::kHtml);
  EXPECT_EQ(is("application/xhtml+xml", "<a href='x'/>"), ListingFormat::kHtml);
  EXPECT_EQ(is("", "<a href=x>"), ListingFormat::kHtml);
  EXPECT_EQ(is("", " [ ]"), ListingFormat::kJson);
  EXPECT_EQ(is("", "<?xml version=\"1.0\"?><ListBucketResult/>"), ListingFormat::kS3);
  EXPECT_EQ(is("", "hello"), std::nullopt);
  EXPECT_EQ(is("text/plain", "<a href=x>"), std::nullopt);
  EXPECT_EQ(is("application/octet-stream", "[]"), std::nullopt);
  EXPECT_TRUE(MayBeListing(""));
  EXPECT_TRUE(MayBeListing("application/json"));
  EXPECT_FALSE(MayBeListing("image/png"));
  EXPECT_TRUE(IsS3Error("<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>"));
  EXPECT_FALSE(IsS3Error("<html>404"));
}

std::vector<std::pair<std::string, std::string>> Names(std::vector<ListedChild> children) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const NamedChild& child : NameChildren(std::move(children))) {
    names.emplace_back(child.entry.name, child.segment);
  }
  return names;
}

TEST(Listing, NamesOfChildren) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  // Servers' own spellings are shown decoded.
  EXPECT_EQ(Names({File("a%20%281%29"), File("caf%c3%a9"), File("b")}),
            (Pairs{{"a (1)", "a%20%281%29"}, {"b", "b"}, {"caf\xC3\xA9", "caf%c3%a9"}}));
  // The plain spelling keeps the name, whatever the order.
  EXPECT_EQ(Names({File("a%2Bb"), File("a+b")}), (Pairs{{"%=a%252Bb", "a%2Bb"}, {"a+b", "a+b"}}));
  // Of several others the first does.
  EXPECT_EQ(Names({File("a%2bb"), File("a%2Bb")}),
            (Pairs{{"%=a%252bb", "a%2bb"}, {"a+b", "a%2Bb"}}));
  // What never needs escaping is shown escaped.
  EXPECT_EQ(Names({File("%41")}), (Pairs{{"%=%2541", "%41"}}));
  EXPECT_EQ(Names({Dir("")}), (Pairs{{"%=", ""}}));
}

TEST(Listing, OneEntryForASegment) {
  const auto named = NameChildren({{"x", EntryKind::kFile, 5, 6}, Dir("x"), File("y"), File("y")});
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[0], (NamedChild{{"x", EntryKind::kDirectory, {}, {}}, "x"}));
  EXPECT_EQ(named[1].segment, "y");
}

}  // namespace
}  // namespace dartfs::fs
