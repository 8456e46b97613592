// nginx's autoindex_format json: an array of objects with name, type, mtime, size.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/base/url.h"
#include "fs/listing_parsers.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr unsigned kRawByte = 0xF700;  // private-use code points that stand for raw bytes

// nginx passes on bytes of names that are not UTF-8, which the parser refuses: they go through it
// as private-use characters.
std::string EscapeRawBytes(std::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (const char c : body) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += fmt::format("\\u{:04X}", kRawByte + byte);
    }
  }
  return out;
}

// The way back: U+F780 to U+F7FF, in UTF-8 EF 9E 80 to EF 9F BF.
std::string RestoreRawBytes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](size_t j) { return static_cast<unsigned char>(text[j]); };
    const bool raw = i + 2 < text.size() && at(i) == 0xEF && (at(i + 1) & 0xFE) == 0x9E;
    if (!raw) {
      out += text[i];
      continue;
    }
    const unsigned code = 0xF000U | ((at(i + 1) & 0x3FU) << 6) | (at(i + 2) & 0x3FU);
    out += static_cast<char>(code - kRawByte);
    i += 2;
  }
  return out;
}

// Takes events; false ends the parse. Members beyond the known ones, nested too, are skipped.
class JsonReader final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Scalar(); }
  bool boolean(bool) override { return Scalar(); }
  bool number_integer(number_integer_t) override { return Scalar(); }
  bool number_float(number_float_t, const string_t&) override { return Scalar(); }
  bool binary(binary_t&) override { return Scalar(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 2 && key_ == "size") size_ = value;
    return Scalar();
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && key_ == "name") name_ = RestoreRawBytes(value);
    if (depth_ == 2 && key_ == "mtime") mtime_ = core::ParseHttpDate(value);
    if (depth_ == 2 && key_ == "type") type_ = std::move(value);
    return Scalar();
  }
  bool key(string_t& value) override {
    if (depth_ == 2) key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 1) ClearEntry();
    return Down(depth_ != 0);
  }
  bool start_array(size_t) override { return Down(true); }
  bool end_object() override {
    if (--depth_ == 1) EndEntry();
    return !listing_.cut;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

  ParsedListing&& Take() { return std::move(listing_); }
  bool cut() const { return listing_.cut; }

 private:
  bool Scalar() const { return depth_ > 0; }
  bool Down(bool allowed) { return allowed && ++depth_ <= kMaxDepth; }

  void ClearEntry() {
    key_.clear();
    name_.clear();
    type_.clear();
    size_.reset();
    mtime_.reset();
  }

  void EndEntry() {
    if (name_.empty() || (type_ != "file" && type_ != "directory")) return;
    const bool directory = type_ == "directory";
    AddChild(listing_, {core::PercentEncode(name_, core::UrlSet::kSegment),
                        directory ? EntryKind::kDirectory : EntryKind::kFile,
                        directory ? std::nullopt : size_, mtime_});
  }

  int depth_ = 0;
  std::string key_, name_, type_;
  std::optional<uint64_t> size_;
  std::optional<int64_t> mtime_;
  ParsedListing listing_;
};

}  // namespace

Result<ParsedListing> ParseJsonListing(std::string_view body) {
  JsonReader reader;
  const std::string text = EscapeRawBytes(body);
  if (!json::sax_parse(text, &reader) && !reader.cut()) {
    return MakeError(Code::kBadResponse, "listing is not the JSON it should be");
  }
  ParsedListing listing = reader.Take();
  listing.format = ListingFormat::kJson;
  listing.index = true;
  return listing;
}

}  // namespace dartfs::fs
