// Buckets of object stores as directories.
#include "fs/http_namespace_fixture.h"

namespace dartfs::fs {
namespace {

std::string S3Page(const std::string& prefix, const std::string& entries,
                   const std::string& next = "") {
  std::string page = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult><Prefix>" +
                     prefix + "</Prefix><EncodingType>url</EncodingType>";
  if (!next.empty()) {
    page += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next +
            "</NextContinuationToken>";
  }
  return page + entries + "</ListBucketResult>";
}
std::string S3Key(const std::string& key) {
  return "<Contents><Key>" + key + "</Key><Size>3</Size></Contents>";
}
std::string S3Prefix(const std::string& prefix) {
  return "<CommonPrefixes><Prefix>" + prefix + "</Prefix></CommonPrefixes>";
}
const std::string kList = "?list-type=2&delimiter=%2F&encoding-type=url&prefix=";

class S3NamespaceTest : public HttpNamespaceTest {
 protected:
  void AnswerXml(const std::string& url, const std::string& body, int status = 200) {
    Answer(url, status, {{"Content-Type", "application/xml"}}, body);
  }
  const std::string kNoSuchKey = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>";
};

TEST_F(S3NamespaceTest, ABucketAsTheMountsRoot) {
  Mount("http://b/");
  auto root = List();
  AnswerXml("http://b/", S3Page("", S3Key("deep/x/y") + S3Key("z")));
  AnswerXml("http://b/" + kList, S3Page("", S3Key("a%2Bb"), "t/1"));
  AnswerXml("http://b/" + kList + "&continuation-token=t%2F1",
            S3Page("", S3Key("z") + S3Prefix("deep/")));
  ASSERT_TRUE(root.done() && *root);
  EXPECT_EQ(NamesOf(**root), "a+b deep/ z ");
  EXPECT_EQ((**root)->entries[0].size, 3U);
  EXPECT_TRUE((**root)->complete);
  EXPECT_EQ(names_->UrlOf({}, "a+b")->ToString(), "http://b/a%2Bb");
  // From now on there is no plain request.
  auto deep = List({"deep/"});
  AnswerXml("http://b/" + kList + "deep%2F", S3Page("deep/", S3Prefix("deep/x/")));
  EXPECT_EQ(NamesOf(**deep), "x/ ");
}

TEST_F(S3NamespaceTest, PagesThatGoInACircleEndAtOnce) {
  for (const int length : {1, 2, 3}) {
    Mount("http://b/");
    auto root = List();
    AnswerXml("http://b/", S3Page("", S3Key("a")));
    AnswerXml("http://b/" + kList, S3Page("", S3Key("a"), "t0"));
    for (int i = 1; i <= length; ++i) {
      AnswerXml("http://b/" + kList + "&continuation-token=t" + std::to_string(i - 1),
                S3Page("", S3Key("a"), "t" + std::to_string(i % length)));
    }
    ASSERT_TRUE(root.done()) << length;
    ASSERT_FALSE(*root) << length;
    EXPECT_EQ(root->error().code, Code::kBadResponse);
  }
}

TEST_F(S3NamespaceTest, APrefixInVirtualHostStyle) {
  Mount("http://b/p%20q/");
  auto root = List();
  AnswerXml("http://b/p%20q/", kNoSuchKey, 404);
  AnswerXml("http://b/" + kList + "p%20q%2F", S3Page("p+q/", S3Key("p+q/a")));
  ASSERT_TRUE(root.done() && *root);
  EXPECT_EQ(NamesOf(**root), "a ");
}

TEST_F(S3NamespaceTest, APrefixInPathStyle) {
  Mount("http://h/bucket/p/");
  auto root = List();
  AnswerXml("http://h/bucket/p/", kNoSuchKey, 404);
  AnswerXml("http://h/" + kList + "bucket%2Fp%2F", kNoSuchKey, 403);
  AnswerXml("http://h/bucket/" + kList + "p%2F", S3Page("p/", S3Key("p/a")));
  ASSERT_TRUE(root.done() && *root);
  EXPECT_EQ(NamesOf(**root), "a ");
}

TEST_F(S3NamespaceTest, ABucketThatMayNotBeListed) {
  Mount("http://h/bucket/p/");
  auto root = List();
  AnswerXml("http://h/bucket/p/", kNoSuchKey, 403);
  AnswerXml("http://h/" + kList + "bucket%2Fp%2F", kNoSuchKey, 403);
  AnswerXml("http://h/bucket/" + kList + "p%2F", kNoSuchKey, 403);
  ASSERT_TRUE(root.done() && *root);
  EXPECT_TRUE((**root)->entries.empty());
  EXPECT_FALSE((**root)->complete);
  // It is not looked for again at once.
  scheduler_.Advance(seconds(2));
  auto again = List();
  AnswerXml("http://h/bucket/p/", kNoSuchKey, 403);
  EXPECT_TRUE(again.done());
}

TEST_F(S3NamespaceTest, DirectoriesAreWhatHasSomethingInIt) {
  Mount("http://b/");
  auto root = List();
  AnswerXml("http://b/", S3Page("", ""));
  AnswerXml("http://b/" + kList, S3Page("", ""));
  EXPECT_TRUE((**root)->complete);
  scheduler_.Advance(seconds(80));
  auto absent = Lookup("nope");
  AnswerXml("http://b/" + kList + "nope%2F", S3Page("nope/", ""));
  ExpectError(absent, Code::kNotFound);
  auto dir = Lookup("sub");
  AnswerXml("http://b/" + kList + "sub%2F", S3Page("sub/", S3Key("sub/x")));
  ExpectDir(dir, "sub/");
}

}  // namespace
}  // namespace dartfs::fs
