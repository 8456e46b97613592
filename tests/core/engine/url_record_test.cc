#include "core/engine/url_record.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

UrlRecord Sample() {
  UrlRecord record;
  record.version = "e:\"v1\"";
  record.size = uint64_t{1} << 40;
  record.etag = "\"v1\"";
  record.last_modified = "Mon, 02 Jan 2006 15:04:05 GMT";
  record.content_type = std::string("a\0b", 3);
  record.range_blind = true;
  record.seen_unix = -5;
  record.fields.headers = {{"Cache-Control", "max-age=60"}, {"X-Linked-Etag", ""}};
  record.fields.shared_cacheable = false;
  record.via_redirect = true;
  return record;
}

TEST(UrlRecord, RoundTrip) {
  EXPECT_EQ(DecodeUrlRecord(EncodeUrlRecord(Sample())), Sample());
  EXPECT_EQ(DecodeUrlRecord(EncodeUrlRecord(UrlRecord())), UrlRecord());
}

TEST(UrlRecord, EveryPrefixAndEveryExtensionIsRefused) {
  const std::string bytes = EncodeUrlRecord(Sample());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(DecodeUrlRecord(bytes.substr(0, cut)), std::nullopt) << cut;
  }
  EXPECT_EQ(DecodeUrlRecord(bytes + "x"), std::nullopt);
  std::string other = bytes;
  other[0] = 3;
  EXPECT_EQ(DecodeUrlRecord(other), std::nullopt);
}

TEST(UrlRecord, TheFormatWithoutFieldsIsStillRead) {
  UrlRecord old = Sample();
  old.fields = {};
  old.via_redirect = false;
  std::string bytes = EncodeUrlRecord(old);
  bytes[0] = 1;
  bytes.resize(bytes.size() - 3);
  old.fields.shared_cacheable = false;  // nobody has looked
  EXPECT_EQ(DecodeUrlRecord(bytes), old);
  EXPECT_EQ(DecodeUrlRecord(bytes + '\0'), std::nullopt);
}

TEST(UrlRecord, MoreFieldsThanAreKeptAreRefused) {
  UrlRecord record;
  record.fields.headers.resize(16);
  EXPECT_EQ(DecodeUrlRecord(EncodeUrlRecord(record)), record);
  record.fields.headers.resize(17);
  EXPECT_EQ(DecodeUrlRecord(EncodeUrlRecord(record)), std::nullopt);
}

TEST(UrlRecord, AbsurdLengthsAreRefused) {
  std::string bytes = EncodeUrlRecord(Sample());
  for (size_t i = 1; i < 5; ++i) bytes[i] = '\xff';
  EXPECT_EQ(DecodeUrlRecord(bytes), std::nullopt);
}

}  // namespace
}  // namespace dartfs::core
