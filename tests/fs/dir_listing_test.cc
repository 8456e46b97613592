#include "fs/dir_listing.h"

#include <gtest/gtest.h>

#include "fake/seeded_random.h"

namespace dartfs::fs {
namespace {

constexpr std::string_view kUrl = "http://h/d/";

DirListing Sample() {
  std::vector<ListedChild> children{
      {"plain", EntryKind::kFile, 0, -5},
      {"sub", EntryKind::kDirectory, {}, 1795980469},
      {"a%281%29", EntryKind::kFile, UINT64_MAX - 1, {}},
      {"%41", EntryKind::kFile, {}, {}},
      {"", EntryKind::kDirectory, {}, {}},
      {"[" + std::string(300, 'x') + ".img", EntryKind::kFile, 7, {}},
  };
  return DirListing(NameChildren(std::move(children)), true, {"\"tag\"", "yesterday"});
}

TEST(DirListing, FindsNamesAndTheirSpelling) {
  const DirListing listing = Sample();
  EXPECT_EQ(listing.size(), 6U);
  ASSERT_NE(listing.Find("a(1)"), nullptr);
  EXPECT_EQ(listing.SegmentOf(*listing.Find("a(1)")), "a%281%29");
  EXPECT_EQ(listing.SegmentOf(*listing.Find("plain")), "plain");
  EXPECT_EQ(listing.SegmentOf(*listing.Find("%=%2541")), "%41");
  EXPECT_EQ(listing.SegmentOf(*listing.Find("%=")), "");
  EXPECT_EQ(listing.Find("sub")->kind, EntryKind::kDirectory);
  EXPECT_EQ(listing.Find("su"), nullptr);
  EXPECT_EQ(listing.Find("zzz"), nullptr);
  EXPECT_EQ(listing.Find(""), nullptr);
}

TEST(DirListing, OverlongNamesAreFoundByTheirDigest) {
  const DirListing listing = Sample();
  const std::string segment = "[" + std::string(300, 'x') + ".img";
  bool seen = false;
  for (const ListedEntry& entry : listing.shown()->entries) {
    if (!entry.name.starts_with("%~")) continue;
    seen = true;
    EXPECT_EQ(listing.SegmentOf(entry), segment);
    EXPECT_EQ(listing.Find(entry.name), &entry);
  }
  EXPECT_TRUE(seen);
}

TEST(DirListing, RecordBringsEverythingBack) {
  const DirListing listing = Sample();
  const std::string record = EncodeDirListing(listing, kUrl);
  const auto back = DecodeDirListing(record, kUrl);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->validators(), listing.validators());
  EXPECT_TRUE(back->shown()->complete);
  ASSERT_EQ(back->size(), listing.size());
  for (size_t i = 0; i < back->size(); ++i) {
    const ListedEntry& want = listing.shown()->entries[i];
    const ListedEntry& got = back->shown()->entries[i];
    EXPECT_EQ(got.name, want.name);
    EXPECT_EQ(got.kind, want.kind);
    EXPECT_EQ(got.size, want.size);
    EXPECT_EQ(got.mtime, want.mtime);
    EXPECT_EQ(back->SegmentOf(got), listing.SegmentOf(want));
  }
  EXPECT_EQ(DecodeDirListing(record, "http://h/other/"), nullptr);
}

TEST(DirListing, BrokenRecordsAreNone) {
  const std::string record = EncodeDirListing(Sample(), kUrl);
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_EQ(DecodeDirListing(record.substr(0, size), kUrl), nullptr) << size;
  }
  EXPECT_EQ(DecodeDirListing(record + "x", kUrl), nullptr);
  core::SeededRandom random(core::TestSeed());
  for (int i = 0; i < 20000; ++i) {
    std::string bad = record;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    }
    const auto listing = DecodeDirListing(bad, kUrl);  // must not crash
    if (listing == nullptr) continue;
    for (const ListedEntry& entry : listing->shown()->entries) listing->SegmentOf(entry);
  }
}

TEST(DirListing, KindRecords) {
  const std::string record = EncodeDirKind(kUrl);
  EXPECT_TRUE(DecodeDirKind(record, kUrl));
  EXPECT_FALSE(DecodeDirKind(record, "http://h/e/"));
  EXPECT_FALSE(DecodeDirKind(record + "x", kUrl));
  EXPECT_FALSE(DecodeDirKind("", kUrl));
  EXPECT_NE(DirKindKey(kUrl), DirListingKey(kUrl));
  EXPECT_LE(DirListingKey(std::string(10000, 'x')).size(), 64U);
}

}  // namespace
}  // namespace dartfs::fs
