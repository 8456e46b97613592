#include "core/base/identity.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

const std::string kHex = Repeat("ab", 32);
const std::string kDigest = "sha256:" + kHex;

Url Parse(const std::string& text) {
  auto url = ParseUrl(text);
  EXPECT_TRUE(url.has_value()) << text;
  return url.value_or(Url{"http", "unparsable", "", "", "/", std::nullopt});
}

Identity Make(const std::string& text, const IdentityOptions& options = {}) {
  return MakeIdentity(Parse(text), options);
}

std::string Local(const std::string& text, const IdentityOptions& options = {}) {
  return LocalId(Parse(text), options);
}

struct ExampleRow {
  std::string url;
  std::string local_id;
  std::string digest;  // empty: not content-addressed
};

// IDENTITY.md, "Examples".
TEST(Identity, DocumentedExamples) {
  const std::vector<ExampleRow> rows = {
      {"HTTPS://Images.Example.org:443/a%20b.img?x=1#y", "https://images.example.org/a%20b.img?x=1",
       ""},
      {"http://h/a%2Fb", "http://h/a%2Fb", ""},
      {"http://h/a/b", "http://h/a/b", ""},
      {"http://h/d?file=a", "http://h/d?file=a", ""},
      {"http://h/d?file=b", "http://h/d?file=b", ""},
      {"http://h/x?st=1&v=2", "http://h/x?st=1&v=2", ""},
      {"https://b.s3.example/"
       "x.bin?X-Amz-Algorithm=A&X-Amz-Credential=C&X-Amz-Signature=S&versionId=7",
       "https://b.s3.example/x.bin?versionId=7", ""},
      {"https://r.example/v2/a/b/blobs/sha256:" + Repeat("AB", 32),
       "https://r.example/v2/a/b/blobs/sha256:" + Repeat("AB", 32), kDigest},
      {"https://r.example/v2/a/b/blobs/sha256:" + kHex.substr(1),
       "https://r.example/v2/a/b/blobs/sha256:" + kHex.substr(1), ""},
      {"https://r.example/v2/a/b/blobs/" + kDigest + "/x",
       "https://r.example/v2/a/b/blobs/" + kDigest + "/x", ""},
      {"https://k.example/docker/registry/v2/blobs/sha256/ab/" + kHex +
           "/data?Signature=S&Expires=1&OSSAccessKeyId=K",
       "https://k.example/docker/registry/v2/blobs/sha256/ab/" + kHex + "/data", kDigest},
      {"https://user:pw@h/x", "https://h/x", ""},
  };
  for (const auto& row : rows) {
    const Identity identity = Make(row.url);
    EXPECT_EQ(identity.local_id, row.local_id);
    EXPECT_EQ(identity.content_addressed(), !row.digest.empty()) << row.url;
    if (identity.digest) {
      EXPECT_EQ(identity.digest->ToString(), row.digest);
    }
  }
}

struct LocalRow {
  const char* name;
  const char* url;
  const char* want;
};

TEST(LocalId, BesideTheQuery) {
  const LocalRow rows[] = {
      {"https default port", "https://h:443/x", "https://h/x"},
      {"http default port", "http://h:80/x", "http://h/x"},
      {"default port with zeros", "http://h:00080/x", "http://h/x"},
      {"the other scheme's port", "http://h:443/x", "http://h:443/x"},
      {"port as written", "http://h:08080/x", "http://h:08080/x"},
      {"scheme matters", "https://h/x", "https://h/x"},
      {"case of the path", "http://H/X", "http://h/X"},
      {"escapes of another case", "http://h/%2f", "http://h/%2f"},
      {"needless escape", "http://h/%61", "http://h/%61"},
      {"double slash", "http://h//x/", "http://h//x/"},
      {"dots", "http://h/a/../x", "http://h/a/../x"},
      {"empty path", "http://h", "http://h/"},
      {"empty path with query", "http://h?x", "http://h/?x"},
      {"trailing dot of the host", "http://h./x", "http://h./x"},
      {"IPv6", "http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"},
      {"login with @", "http://a@b:c@d@h/x", "http://h/x"},
      {"fragment", "http://h/x#sha256:1?y", "http://h/x"},
  };
  for (const auto& row : rows) EXPECT_EQ(Local(row.url), row.want) << row.name;
}

struct QueryRow {
  const char* name;
  const char* query;
  const char* want;  // with the '?', unless nothing is left
};

void ExpectQueries(const std::vector<QueryRow>& rows, const IdentityOptions& options = {}) {
  for (const auto& row : rows) {
    const std::string id = Local(std::string("http://h/x?") + row.query, options);
    EXPECT_EQ(id, std::string("http://h/x") + row.want) << row.name;
    EXPECT_EQ(Local(id, options), id) << row.name;
  }
}

TEST(LocalId, CompleteFamilies) {
  ExpectQueries({
      {"AWS V4",
       "X-Amz-Algorithm=A&X-Amz-Credential=C&X-Amz-Date=D&X-Amz-Expires=1&X-Amz-SignedHeaders=host&"
       "X-Amz-Signature=S&X-Amz-Security-Token=T",
       ""},
      {"AWS V4 in any order", "X-Amz-Signature=S&v=1&X-Amz-Credential=C", "?v=1"},
      {"AWS V2", "AWSAccessKeyId=K&Expires=1&Signature=S&x-amz-security-token=T&v=1", "?v=1"},
      {"GCS V2", "GoogleAccessId=K&Expires=1&Signature=S&generation=5", "?generation=5"},
      {"GCS V4",
       "X-Goog-Algorithm=A&X-Goog-Credential=C&X-Goog-Date=D&X-Goog-Expires=1&"
       "X-Goog-SignedHeaders=host&X-Goog-Signature=S&generation=5",
       "?generation=5"},
      {"CloudFront, canned", "a=1&Expires=1&Signature=S&Key-Pair-Id=K", "?a=1"},
      {"CloudFront, custom", "Policy=P&Signature=S&Key-Pair-Id=K", ""},
      {"CloudFront, both", "Policy=P&Expires=1&Signature=S&Key-Pair-Id=K", ""},
      {"Azure",
       "sv=1&st=2&se=3&sr=b&sp=r&spr=https&sip=0&ss=b&srt=o&skoid=1&sktid=1&skt=1&ske=1&sks=b&skv="
       "1&"
       "sdd=1&saoid=1&suoid=1&scid=1&si=x&sig=S&snapshot=T",
       "?snapshot=T"},
      {"Azure, stored policy", "si=p&sv=1&sr=c&sig=S", ""},
      {"OSS", "OSSAccessKeyId=K&Expires=1&Signature=S&security-token=T&versionId=1",
       "?versionId=1"},
      {"OSS V4",
       "x-oss-signature-version=V&x-oss-credential=C&x-oss-date=D&x-oss-expires=1&x-oss-signature="
       "S&"
       "x-oss-security-token=T&a=1",
       "?a=1"},
      {"COS",
       "q-sign-algorithm=sha1&q-ak=A&q-sign-time=1&q-key-time=1&q-header-list=&q-url-param-list=&"
       "q-signature=S&x-cos-security-token=T&a=1",
       "?a=1"},
      {"two families", "sig=S&sv=1&se=2&X-Amz-Signature=S&X-Amz-Credential=C&a=1", "?a=1"},
      {"families that share names",
       "Signature=S&Expires=1&AWSAccessKeyId=K&Key-Pair-Id=P&OSSAccessKeyId=O&security-token=T&a",
       "?a"},
  });
}

// One marker missing: everything stays.
TEST(LocalId, IncompleteFamilies) {
  ExpectQueries({
      {"AWS V4 without signature", "X-Amz-Credential=C&X-Amz-Date=D",
       "?X-Amz-Credential=C&X-Amz-Date=D"},
      {"AWS V4 without credential", "X-Amz-Signature=S&X-Amz-Date=D",
       "?X-Amz-Signature=S&X-Amz-Date=D"},
      {"AWS V2 without key", "Signature=S&Expires=1&x-amz-security-token=T",
       "?Signature=S&Expires=1&x-amz-security-token=T"},
      {"AWS V2 without expiry", "Signature=S&AWSAccessKeyId=K", "?Signature=S&AWSAccessKeyId=K"},
      {"AWS V2 without signature", "Expires=1&AWSAccessKeyId=K", "?Expires=1&AWSAccessKeyId=K"},
      {"GCS V2 without signature", "Expires=1&GoogleAccessId=K", "?Expires=1&GoogleAccessId=K"},
      {"GCS V2 without expiry", "Signature=S&GoogleAccessId=K", "?Signature=S&GoogleAccessId=K"},
      {"GCS V4 without signature", "X-Goog-Credential=C", "?X-Goog-Credential=C"},
      {"GCS V4 without credential", "X-Goog-Signature=S", "?X-Goog-Signature=S"},
      {"CloudFront without expiry or policy", "Signature=S&Key-Pair-Id=K",
       "?Signature=S&Key-Pair-Id=K"},
      {"CloudFront without key pair", "Signature=S&Policy=P&Expires=1",
       "?Signature=S&Policy=P&Expires=1"},
      {"CloudFront without signature", "Key-Pair-Id=K&Policy=P", "?Key-Pair-Id=K&Policy=P"},
      {"Azure without signature", "sv=1&se=2&sp=r", "?sv=1&se=2&sp=r"},
      {"Azure without version", "sig=S&se=2&sp=r", "?sig=S&se=2&sp=r"},
      {"Azure without expiry or policy", "sig=S&sv=1&sp=r", "?sig=S&sv=1&sp=r"},
      {"OSS without key", "Signature=S&Expires=1&security-token=T",
       "?Signature=S&Expires=1&security-token=T"},
      {"OSS without expiry", "Signature=S&OSSAccessKeyId=K", "?Signature=S&OSSAccessKeyId=K"},
      {"OSS without signature", "Expires=1&OSSAccessKeyId=K", "?Expires=1&OSSAccessKeyId=K"},
      {"OSS V4 without signature", "x-oss-credential=C&x-oss-date=D",
       "?x-oss-credential=C&x-oss-date=D"},
      {"OSS V4 without credential", "x-oss-signature=S", "?x-oss-signature=S"},
      {"COS without signature", "q-ak=A&q-sign-time=1", "?q-ak=A&q-sign-time=1"},
      {"COS without key", "q-signature=S", "?q-signature=S"},
      {"markers of two families", "X-Amz-Signature=S&X-Goog-Credential=C",
       "?X-Amz-Signature=S&X-Goog-Credential=C"},
  });
}

// What only resembles a signature, or stands beside one, stays.
TEST(LocalId, AdversarialQueries) {
  ExpectQueries({
      {"empty query", "", ""},
      {"one ampersand", "&", "?&"},
      {"empty parameters stay", "a&&b&", "?a&&b&"},
      {"plus and escapes stay", "a=b+c%20d%2B&%61=1", "?a=b+c%20d%2B&%61=1"},
      {"second question mark", "a?b=1", "?a?b=1"},
      {"order stays", "b=1&a=2&b=0", "?b=1&a=2&b=0"},
      {"marker in lower case", "x-amz-signature=S&x-amz-credential=C",
       "?x-amz-signature=S&x-amz-credential=C"},
      {"marker in capitals", "SIG=S&SV=1&SE=2", "?SIG=S&SV=1&SE=2"},
      {"one marker in another case", "X-Amz-signature=S&X-Amz-Credential=C",
       "?X-Amz-signature=S&X-Amz-Credential=C"},
      {"parameter in another case beside a complete family",
       "X-Amz-Signature=S&X-Amz-Credential=C&x-amz-date=D", "?x-amz-date=D"},
      {"escaped marker", "X%2DAmz-Signature=S&X-Amz-Credential=C",
       "?X%2DAmz-Signature=S&X-Amz-Credential=C"},
      {"escaped parameter beside a complete family", "sig=S&sv=1&se=2&%73p=r", "?%73p=r"},
      {"duplicates all go", "sig=S&sv=1&se=2&sig=T&sp=r&sp=w&a=1&a=2", "?a=1&a=2"},
      {"marker without value", "sig&sv&se&a", "?a"},
      {"marker only in a value", "a=X-Amz-Signature=S&X-Amz-Credential=C",
       "?a=X-Amz-Signature=S&X-Amz-Credential=C"},
      {"semicolons separate nothing", "sig=S;sv=1;se=2&a", "?sig=S;sv=1;se=2&a"},
      {"longer name", "sigx=S&sv=1&se=2", "?sigx=S&sv=1&se=2"},
      {"space-like name", "sig+=S&sv=1&se=2", "?sig+=S&sv=1&se=2"},
      {"prefix alone", "X-Amz-Signature=S&X-Amz-Credential=C&X-Amz-=1&X-Amz=2", "?X-Amz=2"},
      {"asterisk is no wildcard in a URL", "X-Amz-*=1&v=2", "?X-Amz-*=1&v=2"},
      {"response overrides stay", "X-Amz-Signature=S&X-Amz-Credential=C&response-content-type=a",
       "?response-content-type=a"},
      {"image processing stays",
       "x-oss-process=image/resize,w_9&x-oss-signature=S&x-oss-credential=C",
       "?x-oss-process=image/resize,w_9"},
      {"trailing ampersand behind a signature", "sig=S&sv=1&se=2&", ""},
      {"trailing ampersands behind a signature", "sig=S&sv=1&se=2&&", "?&"},
      {"empty name", "=1&sig=S&sv=1&se=2", "?=1"},
  });
}

TEST(LocalId, IgnoredNames) {
  IdentityOptions options;
  options.ignore_query = {"token", "%74"};
  ExpectQueries(
      {
          {"goes", "a=1&token=T&b=2&token", "?a=1&b=2"},
          {"goes as written", "%74=1", ""},
          {"case matters", "Token=T", "?Token=T"},
          {"nothing is decoded", "%74oken=T", "?%74oken=T"},
          {"whole names only", "tokens=T&to=1", "?tokens=T&to=1"},
          {"nothing left", "token=T", ""},
      },
      options);
  // An ignored marker still completes its family.
  options.ignore_query = {"sig"};
  ExpectQueries({{"marker", "sig=S&sv=1&se=2&sp=r", ""}}, options);
}

struct DigestRow {
  const char* name;
  std::string url;
  bool content_addressed;
};

TEST(Identity, ContentAddressed) {
  const std::string host = "https://r.example/";
  const std::string layout = host + "docker/registry/v2/blobs/sha256/ab/" + kHex;
  const std::vector<DigestRow> rows = {
      {"last segment", host + kDigest, true},
      {"sha512", host + "sha512:" + Repeat("ab", 64), true},
      {"manifest", host + "v2/a/manifests/" + kDigest, true},
      {"query does not matter", host + kDigest + "?ns=x", true},
      {"fragment does not matter", host + kDigest + "#x", true},
      {"login does not matter", "https://u:p@r.example/" + kDigest, true},
      {"mixed case", host + "sha256:" + Repeat("aB", 32), true},
      {"two digests, the last counts", host + "sha512:" + Repeat("ab", 64) + "/" + kDigest, true},
      {"not the last segment", host + kDigest + "/x", false},
      {"slash behind", host + kDigest + "/", false},
      {"63 digits", host + "sha256:" + kHex.substr(1), false},
      {"65 digits", host + "sha256:" + kHex + "a", false},
      {"escaped colon", host + "sha256%3A" + kHex, false},
      {"escaped digit", host + "sha256:%61" + kHex.substr(1), false},
      {"escaped slash before", host + "a%2F" + kDigest, false},
      {"algorithm in capitals", host + "SHA256:" + kHex, false},
      {"32 digits of md5", host + "md5:" + Repeat("ab", 16), false},
      {"in the query", host + "x?" + kDigest, false},
      {"in the query, behind a slash", host + "x?a=/" + kDigest, false},
      {"in the host", "https://sha256/" + kHex, false},
      {"more in the segment", host + "x@" + kDigest, false},
      {"extension", host + kDigest + ".gz", false},
      {"layout", layout, true},
      {"layout with data", layout + "/data", true},
      {"layout with other file", layout + "/link", false},
      {"layout, other two digits", host + "blobs/sha256/ba/" + kHex + "/data", false},
      {"layout, escaped", host + "blobs/sha256%2Fab/" + kHex + "/data", false},
  };
  for (const auto& row : rows) {
    const Identity identity = Make(row.url);
    EXPECT_EQ(identity.content_addressed(), row.content_addressed) << row.name;
    if (row.content_addressed && row.url.find("sha512:" + kHex) == std::string::npos) {
      EXPECT_EQ(identity.digest->ToString(), kDigest) << row.name;
    }
  }
  const std::string both = host + "sha512:" + Repeat("ab", 64) + "/" + kDigest;
  EXPECT_EQ(Make(both).digest->ToString(), kDigest);
}

TEST(Identity, OciDigestOnly) {
  IdentityOptions options;
  options.oci_digest_only = true;
  const std::string layout = "https://h/blobs/sha256/ab/" + kHex + "/data";
  EXPECT_FALSE(Make(layout, options).content_addressed());
  EXPECT_EQ(Make(layout, options).wire_id, layout);
  EXPECT_TRUE(Make("https://h/" + kDigest, options).content_addressed());
}

TEST(Identity, DeclaredDigestWins) {
  const Digest declared{"sha256", std::string(64, 'c')};
  const Identity plain = MakeIdentity(Parse("https://h/x.img"), {}, declared);
  EXPECT_EQ(plain.digest, declared);
  EXPECT_EQ(plain.local_id, "https://h/x.img");
  EXPECT_EQ(plain.wire_id, "https://h/x.img");  // nodes without the catalogue route alike
  EXPECT_EQ(MakeIdentity(Parse("https://h/" + kDigest), {}, declared).digest, declared);
}

TEST(Identity, OtherNames) {
  const Identity identity = Make("HTTPS://u:secret@H/a%20b?token=secret#f");
  EXPECT_EQ(identity.wire_id, "https://h/a b");
  EXPECT_EQ(identity.authority, "https://h:443");
  EXPECT_EQ(identity.trust_domain, "https://h:443");
  EXPECT_EQ(identity.cache_namespace, "dart");
  EXPECT_EQ(identity.redacted_url.find("secret"), std::string::npos);
  EXPECT_NE(identity.redacted_url.find("/a%20b"), std::string::npos);
}

struct TrustRow {
  const char* name;
  const char* url;
  const char* want;
};

TEST(Identity, TrustDomains) {
  IdentityOptions options;
  options.trusted_origins = {"registry.example", "*.CDN.example", "[::1]"};
  ASSERT_TRUE(ValidateIdentityOptions(options).has_value());
  const TrustRow rows[] = {
      {"named", "https://registry.example/x", "https://*"},
      {"any port", "https://Registry.Example:8443/x", "https://*"},
      {"pattern", "https://a.cdn.example/x", "https://*"},
      {"pattern, deeper", "https://b.a.cdn.example/x", "https://*"},
      {"address", "http://[::1]:1/x", "http://*"},
      {"plain http apart", "http://registry.example/x", "http://*"},
      {"the domain itself", "https://cdn.example/x", "https://cdn.example:443"},
      {"only the end alike", "https://evilcdn.example/x", "https://evilcdn.example:443"},
      {"name as a prefix", "https://registry.example.evil/x", "https://registry.example.evil:443"},
      {"sub-domain of a name", "https://a.registry.example/x", "https://a.registry.example:443"},
      {"in the login", "https://registry.example@evil/x", "https://evil:443"},
      {"other host", "https://h/x", "https://h:443"},
  };
  for (const auto& row : rows) EXPECT_EQ(Make(row.url, options).trust_domain, row.want) << row.name;
}

TEST(IdentityOptions, Validate) {
  EXPECT_TRUE(ValidateIdentityOptions({}).has_value());
  const auto refused = [](IdentityOptions options) {
    const auto status = ValidateIdentityOptions(options);
    return !status.has_value() && status.error().code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.cache_namespace = "a\x1F"}));
  EXPECT_TRUE(refused({.cache_namespace = ""}));
  for (const char* name : {"", "a=b", "a&b", "a b", "a#b", "\xC3\xA4"}) {
    EXPECT_TRUE(refused({.ignore_query = {"good", name}})) << name;
  }
  for (const char* host : {"", "*", "*.", "a.*", "*a.example", "h:80", "http://h", "u@h", "h/x",
                           "h?x", "*.[::1", "a b"}) {
    EXPECT_TRUE(refused({.trusted_origins = {"good", host}})) << host;
  }
}

TEST(StoreKeys, OfUrls) {
  const Version etag = MakeVersion({.etag = "\"v1\""});
  const Identity identity = Make("HTTPS://Images.Example.org:443/a%20b.img?x=1#y");
  // Computed with an independent script.
  EXPECT_EQ(MakeStoreKey(identity, etag, Trust::kUnverified).ToHex(),
            "f32231a594016f0506e56117b73c04d8");
  EXPECT_EQ(MakeStoreKey(identity, etag, Trust::kVerified),
            MakeStoreKey(identity, etag, Trust::kUnverified));
  EXPECT_EQ(PeerObjectKey(identity, etag), MakeStoreKey(identity, etag, Trust::kUnverified));
  EXPECT_EQ(NameOfObject(identity, Trust::kUnverified),
            (ObjectName{'u', "https://images.example.org/a%20b.img?x=1"}));
  const Version versions[] = {
      etag,      MakeVersion({.etag = "\"v2\""}), MakeVersion({.fixed = true}),
      Version(), UnversionedGeneration(1),        UnversionedGeneration(2)};
  for (const auto& a : versions) {
    for (const auto& b : versions) {
      EXPECT_EQ(MakeStoreKey(identity, a, Trust::kUnverified) ==
                    MakeStoreKey(identity, b, Trust::kUnverified),
                &a == &b);
    }
  }
}

TEST(StoreKeys, OfDigests) {
  const Version fixed = MakeVersion({.fixed = true});
  const Identity r = Make("https://r.example/v2/a/blobs/" + kDigest);
  const Identity r_other_path = Make("https://R.example:443/v2/b/blobs/" + kDigest + "?X=1");
  const Identity evil = Make("https://evil.example/" + kDigest);
  const Identity plain_http = Make("http://r.example/" + kDigest);
  EXPECT_EQ(MakeStoreKey(r, fixed, Trust::kUnverified).ToHex(), "57f3b01c41efcd3358c021298b1cdbb9");
  EXPECT_EQ(MakeStoreKey(r, fixed, Trust::kVerified).ToHex(), "f9906a5f8788c3f7af89162363c5016f");
  EXPECT_EQ(MakeStoreKey(r, fixed, Trust::kUnverified),
            MakeStoreKey(r_other_path, fixed, Trust::kUnverified));
  for (const auto& other : {evil, plain_http}) {
    EXPECT_NE(MakeStoreKey(r, fixed, Trust::kUnverified),
              MakeStoreKey(other, fixed, Trust::kUnverified));
    EXPECT_EQ(MakeStoreKey(r, fixed, Trust::kVerified),
              MakeStoreKey(other, fixed, Trust::kVerified));
    EXPECT_EQ(PeerObjectKey(r, fixed), PeerObjectKey(other, fixed));
  }
  // Whatever version a caller passes, a digest has none.
  EXPECT_EQ(MakeStoreKey(r, UnversionedGeneration(7), Trust::kVerified),
            MakeStoreKey(r, fixed, Trust::kVerified));
}

TEST(StoreKeys, TrustedOriginsShareUnverified) {
  IdentityOptions options;
  options.trusted_origins = {"r.example", "*.bucket.example"};
  const Version fixed = MakeVersion({.fixed = true});
  const StoreKey registry =
      MakeStoreKey(Make("https://r.example/" + kDigest, options), fixed, Trust::kUnverified);
  EXPECT_EQ(registry.ToHex(), "d9bec93c287101e0dab5b1f27d51d097");
  EXPECT_EQ(registry,
            MakeStoreKey(Make("https://x.bucket.example/blobs/sha256/ab/" + kHex, options), fixed,
                         Trust::kUnverified));
  EXPECT_NE(registry, MakeStoreKey(Make("https://evil.example/" + kDigest, options), fixed,
                                   Trust::kUnverified));
}

TEST(StoreKeys, OfRecords) {
  const Version etag = MakeVersion({.etag = "\"v1\""});
  const Version fixed = MakeVersion({.fixed = true});
  for (const std::string& text : {std::string("https://h/x?a"), "https://h/" + kDigest}) {
    const Identity identity = Make(text);
    for (const Trust trust : {Trust::kUnverified, Trust::kVerified}) {
      const Version& version = identity.content_addressed() ? fixed : etag;
      const auto key = MakeStoreKey("dart", NameOfObject(identity, trust), version);
      ASSERT_TRUE(key.has_value());
      EXPECT_EQ(*key, MakeStoreKey(identity, version, trust));
    }
  }
  for (const auto& name : {ObjectName{'u',
                                      "a\x1F"
                                      "b"},
                           ObjectName{'d', "sha256:ab"}, ObjectName{'d', kDigest + "\x1F"},
                           ObjectName{'d', kDigest + "\x1F"
                                                     "a\x1F"},
                           ObjectName{'x', "a"}}) {
    EXPECT_FALSE(MakeStoreKey("dart", name, fixed).has_value()) << name.kind;
  }
  EXPECT_FALSE(MakeStoreKey("d\x1F", ObjectName{'u', "a"}, fixed).has_value());
}

struct PeerRow {
  const char* name;
  std::string url;
  Version version;
  PeerRule want;
};

TEST(Identity, PeerRules) {
  const Version fixed = MakeVersion({.fixed = true});
  const Version etag = MakeVersion({.etag = "\"a\""});
  const std::vector<PeerRow> rows = {
      {"digest", "https://h/" + kDigest, fixed, PeerRule::kByDigest},
      {"versioned", "https://h/x", etag, PeerRule::kEcho},
      {"immutable and plain", "https://h/x", fixed, PeerRule::kNoEcho},
      {"immutable, signature only", "https://h/x?sig=1&sv=1&se=1", fixed, PeerRule::kNoEcho},
      {"immutable with query", "https://h/x?a", fixed, PeerRule::kEcho},
      {"immutable with an escape", "https://h/a%20b", fixed, PeerRule::kEcho},
      {"immutable with a malformed escape", "https://h/a%2/b", fixed, PeerRule::kEcho},
      {"immutable, default port written", "https://h:443/x", fixed, PeerRule::kEcho},
      {"immutable, a digest only for the wire", "https://h/" + kDigest + "/x", fixed,
       PeerRule::kEcho},
      {"unversioned", "https://h/x", Version(), PeerRule::kNever},
      {"unversioned generation", "https://h/x", UnversionedGeneration(1), PeerRule::kNever},
  };
  for (const auto& row : rows)
    EXPECT_EQ(PeerRuleOf(Make(row.url), row.version), row.want) << row.name;
}

}  // namespace
}  // namespace dartfs::core
