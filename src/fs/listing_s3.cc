// S3 ListObjectsV2 (and, as far as one page goes, ListObjects), as the API reference describes the
// response. Read with libxml2 as a stream of events.
#include <libxml/parser.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/base/url.h"
#include "fs/listing_parsers.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::ParseUint;
using core::Result;

constexpr size_t kMaxValueBytes = 8 * 1024;  // keys have at most 1,024 bytes, escaped thrice that
constexpr size_t kMaxDepth = 16;

// "2009-10-12T17:50:30.000Z"; the fraction is dropped.
std::optional<int64_t> ParseIsoTime(std::string_view text) {
  if (text.size() < 20 || text.back() != 'Z' || text[4] != '-' || text[7] != '-' ||
      text[10] != 'T' || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto field = [&](size_t at, size_t size) { return ParseUint(text.substr(at, size)); };
  const auto year = field(0, 4), month = field(5, 2), day = field(8, 2);
  const auto hour = field(11, 2), minute = field(14, 2), second = field(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return int64_t{days} * 86400 + static_cast<int64_t>(*hour * 3600 + *minute * 60 + *second);
}

// encoding-type=url: spaces may come as '+', a plus never does.
std::string DecodeKey(std::string text, bool url_encoded) {
  if (!url_encoded) return text;
  for (char& c : text) {
    if (c == '+') c = ' ';
  }
  return core::PercentDecode(text).value_or(std::move(text));
}

class S3Reader {
 public:
  Result<ParsedListing> Read(std::string_view body) {
    xmlSAXHandler handler{};
    handler.initialized = XML_SAX2_MAGIC;
    handler.internalSubset = &S3Reader::OnDoctype;
    handler.startElementNs = &S3Reader::OnStart;
    handler.endElementNs = &S3Reader::OnEnd;
    handler.characters = &S3Reader::OnText;
    handler.cdataBlock = &S3Reader::OnText;
    const std::unique_ptr<xmlParserCtxt, FreeContext> context(
        xmlCreatePushParserCtxt(&handler, this, nullptr, 0, nullptr));
    if (context == nullptr) return MakeError(Code::kInternal, "no memory for an XML parser");
    context_ = context.get();
    xmlCtxtUseOptions(context_, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    const int failed = xmlParseChunk(context_, body.data(), static_cast<int>(body.size()), 1);
    const bool well_formed = failed == 0 && context_->wellFormed != 0;
    if (!refusal_.empty()) return MakeError(Code::kBadResponse, refusal_);
    if (!well_formed) return MakeError(Code::kBadResponse, "listing is not well-formed XML");
    return Finish();
  }

 private:
  struct FreeContext {
    void operator()(xmlParserCtxt* context) const {
      xmlFreeDoc(context->myDoc);
      context->myDoc = nullptr;
      xmlFreeParserCtxt(context);
    }
  };
  struct Entry {
    std::string key;  // as written
    std::string size, time;
    bool common_prefix = false;
  };

  static void OnDoctype(void* self, const xmlChar*, const xmlChar*, const xmlChar*) {
    static_cast<S3Reader*>(self)->Refuse("listing has a DOCTYPE");
  }
  static void OnStart(void* self, const xmlChar* name, const xmlChar*, const xmlChar*, int,
                      const xmlChar**, int, int, const xmlChar**) {
    static_cast<S3Reader*>(self)->Start(reinterpret_cast<const char*>(name));
  }
  static void OnEnd(void* self, const xmlChar*, const xmlChar*, const xmlChar*) {
    static_cast<S3Reader*>(self)->End();
  }
  static void OnText(void* self, const xmlChar* text, int length) {
    auto* const reader = static_cast<S3Reader*>(self);
    reader->text_.append(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
    if (reader->text_.size() > kMaxValueBytes) reader->Refuse("listing has an overlong value");
  }

  void Refuse(std::string why) {
    if (refusal_.empty()) refusal_ = std::move(why);
    xmlStopParser(context_);
  }

  void Start(std::string name) {
    if (path_.empty() && name != "ListBucketResult") return Refuse("XML, but no S3 listing");
    if (path_.size() >= kMaxDepth) return Refuse("listing nests too deep");
    path_.push_back(std::move(name));
    text_.clear();
    if (path_.size() == 2) entry_ = {};
  }

  void End() {
    if (path_.empty()) return;
    const std::string name = std::move(path_.back());
    path_.pop_back();
    if (path_.size() == 2) {
      EndOfEntryValue(path_.back(), name);
    } else if (path_.size() == 1) {
      EndOfListValue(name);
    }
    text_.clear();
  }

  void EndOfEntryValue(const std::string& parent, const std::string& name) {
    // CommonPrefixes may hold several.
    if (parent == "CommonPrefixes" && name == "Prefix") Keep({text_, {}, {}, true});
    if (parent != "Contents") return;
    if (name == "Key") entry_.key = text_;
    if (name == "Size") entry_.size = core::TrimAscii(text_);
    if (name == "LastModified") entry_.time = core::TrimAscii(text_);
  }

  void EndOfListValue(const std::string& name) {
    if (name == "Contents") Keep(std::exchange(entry_, {}));
    if (name == "Prefix") prefix_ = text_;
    if (name == "EncodingType") url_encoded_ = core::TrimAscii(text_) == "url";
    if (name == "IsTruncated") truncated_ = core::TrimAscii(text_) == "true";
    if (name == "NextContinuationToken") next_ = core::TrimAscii(text_);
  }

  void Keep(Entry entry) {
    if (entries_.size() >= kMaxListingEntries) {
      cut_ = true;
      return;
    }
    entries_.push_back(std::move(entry));
  }

  Result<ParsedListing> Finish() {
    ParsedListing listing;
    listing.format = ListingFormat::kS3;
    listing.index = true;
    listing.s3_prefix = DecodeKey(std::move(prefix_), url_encoded_);
    if (truncated_) listing.s3_next = std::move(next_);
    // Without a token the rest is out of reach.
    listing.cut = cut_ || (truncated_ && listing.s3_next.empty());
    for (Entry& entry : entries_) AddEntry(listing, std::move(entry));
    return listing;
  }

  // A key that goes on after a '/' says that there is a directory, delimiter or not.
  void AddEntry(ParsedListing& listing, Entry entry) const {
    const std::string key = DecodeKey(std::move(entry.key), url_encoded_);
    if (!key.starts_with(listing.s3_prefix)) return;
    const std::string_view below = std::string_view(key).substr(listing.s3_prefix.size());
    if (below.empty()) return;
    const size_t slash = below.find('/');
    ListedChild child;
    // '+' in a path means a space to S3: everything that may be is escaped.
    child.segment = core::PercentEncode(below.substr(0, slash), core::UrlSet::kUnreserved);
    if (slash != std::string_view::npos) {
      child.kind = EntryKind::kDirectory;
      const bool again = !listing.children.empty() &&
                         listing.children.back().kind == EntryKind::kDirectory &&
                         listing.children.back().segment == child.segment;
      if (again) return;
    } else if (entry.common_prefix) {
      return;
    } else {
      child.size = ParseUint(entry.size);
      child.mtime = ParseIsoTime(entry.time);
    }
    AddChild(listing, std::move(child));
  }

  xmlParserCtxt* context_ = nullptr;
  std::string refusal_;
  std::vector<std::string> path_;  // open elements
  std::string text_;               // of the innermost one
  Entry entry_;
  std::vector<Entry> entries_;
  std::string prefix_, next_;
  bool url_encoded_ = false, truncated_ = false, cut_ = false;
};

}  // namespace

Result<ParsedListing> ParseS3Listing(std::string_view body) { return S3Reader().Read(body); }

}  // namespace dartfs::fs
