#include "fs/dir_listing.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

constexpr char kFormat = 1;
constexpr char kIsDirectory = 1;
constexpr uint64_t kComplete = 1;

void PutNumber(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size());
  out += text;
}

// 0 for none; the largest value can't be told and is left out.
void PutOptional(std::string& out, std::optional<uint64_t> value) {
  PutNumber(out, value && *value != UINT64_MAX ? *value + 1 : 0);
}

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Reads a record from front to back; once it failed, everything is empty.
class RecordReader {
 public:
  explicit RecordReader(std::string_view record) : left_(record) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && left_.empty(); }

  uint8_t Byte() {
    if (left_.empty()) return Fail();
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = Byte();
      if (shift == 63 && byte > 1) return Fail();
      value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return Fail();
  }
  std::string_view Text() {
    const uint64_t size = Number();
    if (size > left_.size()) Fail();
    const std::string_view text = ok_ ? left_.substr(0, size) : std::string_view();
    left_.remove_prefix(text.size());
    return text;
  }
  std::optional<uint64_t> Optional() {
    const uint64_t value = Number();
    if (value == 0) return std::nullopt;
    return value - 1;
  }

 private:
  uint8_t Fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }
  std::string_view left_;
  bool ok_ = true;
};

std::string Key(std::string_view kind, std::string_view url) {
  constexpr size_t kDigits = 32;
  return std::string(kind) + core::HexEncode(core::Sha256(url)).substr(0, kDigits);
}

std::optional<NamedChild> ReadChild(RecordReader& in) {
  NamedChild child;
  child.segment = in.Text();
  child.entry.name = in.Text();
  child.entry.kind = in.Byte() == 0 ? EntryKind::kFile : EntryKind::kDirectory;
  child.entry.size = in.Optional();
  if (const auto mtime = in.Optional()) child.entry.mtime = UnZigZag(*mtime);
  if (!in.ok() || !IsSegment(child.segment)) return std::nullopt;
  if (child.entry.name.empty()) {
    child.entry.name = SegmentToName(child.segment);
  } else if (FairName(child.segment) != child.entry.name) {
    return std::nullopt;
  }
  return child;
}

}  // namespace

DirListing::DirListing(std::vector<NamedChild> children, bool complete, Validators validators)
    : validators_(std::move(validators)) {
  auto shown = std::make_shared<Listing>();
  shown->complete = complete;
  shown->entries.reserve(children.size());
  spellings_.reserve(children.size());
  memory_bytes_ += validators_.etag.size() + validators_.last_modified.size() +
                   children.size() * (sizeof(ListedEntry) + sizeof(std::string));
  for (NamedChild& child : children) {
    const auto wire = NameToWire(child.entry.name);
    const bool plain = wire && wire->rest == child.segment;
    spellings_.push_back(plain ? std::string() : std::move(child.segment));
    shown->entries.push_back(std::move(child.entry));
    memory_bytes_ += spellings_.back().capacity() + shown->entries.back().name.capacity();
  }
  shown_ = std::move(shown);
}

const ListedEntry* DirListing::Find(std::string_view name) const {
  const auto& entries = shown_->entries;
  const auto it = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const ListedEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return it != entries.end() && it->name == name ? &*it : nullptr;
}

std::string DirListing::SegmentOf(const ListedEntry& entry) const {
  const auto index = static_cast<size_t>(&entry - shown_->entries.data());
  DARTFS_CHECK(index < spellings_.size());
  if (!spellings_[index].empty()) return spellings_[index];
  return NameToWire(entry.name).value().rest;
}

std::string EncodeDirListing(const DirListing& listing, std::string_view url) {
  std::string out(1, kFormat);
  PutText(out, url);
  PutNumber(out, listing.shown()->complete ? kComplete : 0);
  PutText(out, listing.validators().etag);
  PutText(out, listing.validators().last_modified);
  PutNumber(out, listing.size());
  for (const ListedEntry& entry : listing.shown()->entries) {
    const std::string segment = listing.SegmentOf(entry);
    PutText(out, segment);
    PutText(out, SegmentToName(segment) == entry.name ? std::string_view() : entry.name);
    out += entry.kind == EntryKind::kDirectory ? kIsDirectory : '\0';
    PutOptional(out, entry.size);
    PutOptional(out, entry.mtime ? std::optional(ZigZag(*entry.mtime)) : std::nullopt);
  }
  return out;
}

std::shared_ptr<const DirListing> DecodeDirListing(std::string_view record, std::string_view url) {
  RecordReader in(record);
  if (in.Byte() != kFormat || in.Text() != url) return nullptr;
  const bool complete = (in.Number() & kComplete) != 0;
  DirListing::Validators validators;
  validators.etag = in.Text();
  validators.last_modified = in.Text();
  const uint64_t count = in.Number();
  if (!in.ok() || count > kMaxListingEntries) return nullptr;
  std::vector<NamedChild> children;
  for (uint64_t i = 0; i < count; ++i) {
    auto child = ReadChild(in);
    if (!child) return nullptr;
    if (!children.empty() && !(children.back().entry.name < child->entry.name)) return nullptr;
    children.push_back(std::move(*child));
  }
  if (!in.AtEnd()) return nullptr;
  return std::make_shared<const DirListing>(std::move(children), complete, std::move(validators));
}

std::string EncodeDirKind(std::string_view url) {
  std::string out(1, kFormat);
  PutText(out, url);
  out += kIsDirectory;
  return out;
}

bool DecodeDirKind(std::string_view record, std::string_view url) {
  RecordReader in(record);
  return in.Byte() == kFormat && in.Text() == url && in.Byte() == kIsDirectory && in.AtEnd();
}

std::string DirListingKey(std::string_view url) { return Key("list:", url); }
std::string DirKindKey(std::string_view url) { return Key("kind:", url); }

}  // namespace dartfs::fs
