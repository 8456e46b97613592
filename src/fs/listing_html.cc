// HTML pages of links, read with libxml2's HTML parser as a stream of events: no tree is built.
#include <libxml/HTMLparser.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/base/text.h"
#include "fs/listing_parsers.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::PercentDecode;
using core::PercentEncode;
using core::ResolveReference;
using core::Result;
using core::Split;
using core::Url;
using core::UrlSet;

constexpr int kMaxDepth = 512;           // of open elements
constexpr size_t kMaxHeadingBytes = 64;  // looked at in a title

// The parser guesses at encodings and would change the bytes of links. Percent-encoded they are
// plain ASCII to it, and what they have to be on the wire.
std::string AsAscii(std::string_view body) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(body.size() + body.size() / 8);
  for (const char c : body) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) {
      out += ' ';
    } else if (byte < 0x80) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

// As browsers clean an href: no spaces around it, no tabs or line ends in it.
std::string CleanReference(std::string_view href) {
  std::string out(core::TrimAscii(href));
  std::erase_if(out, [](char c) { return c == '\t' || c == '\n' || c == '\r'; });
  return PercentEncode(out, UrlSet::kUrl);
}

// What follows the directory `dir_path` (which ends in '/') in `path`, also where the page spells
// the directory's segments in another way.
std::optional<std::string_view> BelowDirectory(std::string_view dir_path, std::string_view path) {
  if (path.starts_with(dir_path)) return path.substr(dir_path.size());
  const auto dir = Split(dir_path, '/');  // the last one is empty
  const auto all = Split(path, '/');
  if (all.size() < dir.size()) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i + 1 < dir.size(); ++i) {
    const auto ours = PercentDecode(dir[i]);
    if (!ours || ours != PercentDecode(all[i])) return std::nullopt;
    length += all[i].size() + 1;
  }
  return path.substr(length);
}

class HtmlReader {
 public:
  explicit HtmlReader(const Url& url)
      : page_(url),
        base_(url),
        authority_(url.Authority()),
        directory_(url.path.substr(0, url.path.rfind('/') + 1)) {}

  Result<ParsedListing> Read(std::string_view body) {
    // What follows the last tag is no link, or one that was cut short.
    const std::string text = AsAscii(body.substr(0, body.rfind('>') + 1));
    if (text.empty()) return std::move(listing_);
    const std::unique_ptr<htmlParserCtxt, FreeContext> context(
        htmlCreateMemoryParserCtxt(text.data(), static_cast<int>(text.size())));
    if (context == nullptr) return MakeError(Code::kInternal, "no memory for an HTML parser");
    context_ = context.get();
    htmlCtxtUseOptions(context_, HTML_PARSE_NONET | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                                     HTML_PARSE_IGNORE_ENC | HTML_PARSE_NOIMPLIED);
    htmlSAXHandler handler{};
    handler.startElement = &HtmlReader::OnStart;
    handler.endElement = &HtmlReader::OnEnd;
    handler.characters = &HtmlReader::OnText;
    htmlSAXHandler* const own = std::exchange(context_->sax, &handler);
    context_->userData = this;
    htmlParseDocument(context_);
    context_->sax = own;
    return std::move(listing_);
  }

 private:
  struct FreeContext {
    void operator()(htmlParserCtxt* context) const { htmlFreeParserCtxt(context); }
  };

  static std::string_view Text(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

  static void OnStart(void* self, const xmlChar* name, const xmlChar** attributes) {
    static_cast<HtmlReader*>(self)->Start(Text(name), attributes);
  }
  static void OnEnd(void* self, const xmlChar* name) {
    auto* const reader = static_cast<HtmlReader*>(self);
    if (IsHeading(Text(name))) reader->EndHeading();
  }
  static void OnText(void* self, const xmlChar* text, int length) {
    auto* const reader = static_cast<HtmlReader*>(self);
    if (!reader->in_heading_ || reader->heading_.size() >= kMaxHeadingBytes) return;
    reader->heading_.append(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
  }

  static bool IsHeading(std::string_view name) { return name == "title" || name == "h1"; }

  void Start(std::string_view name, const xmlChar** attributes) {
    // Closing tags search all open elements: depth is time.
    if (context_->nameNr > kMaxDepth || listing_.cut) {
      listing_.cut = true;
      xmlStopParser(context_);
      return;
    }
    if (IsHeading(name)) {
      in_heading_ = true;
      heading_.clear();
    }
    if (name != "a" && name != "base") return;
    for (; attributes != nullptr && *attributes != nullptr; attributes += 2) {
      if (Text(attributes[0]) != "href" || attributes[1] == nullptr) continue;
      const std::string reference = CleanReference(Text(attributes[1]));
      if (name == "a") {
        AddLink(reference);
      } else if (auto base = ResolveReference(page_, reference); base && !has_base_) {
        base_ = std::move(*base);
        has_base_ = true;
      }
    }
  }

  void EndHeading() {
    in_heading_ = false;
    const std::string_view heading = core::TrimAscii(heading_);
    for (const std::string_view start : {"Index of", "Directory listing for", "Directory: "}) {
      if (heading.starts_with(start)) listing_.index = true;
    }
  }

  void AddLink(std::string_view reference) {
    const auto target = ResolveReference(base_, reference);
    if (!target || target->query || target->Authority() != authority_) return;
    const auto below = BelowDirectory(directory_, target->path);
    if (!below) return;
    std::string_view segment = *below;
    const bool directory = segment.ends_with('/');
    if (directory) segment.remove_suffix(1);
    if (segment.empty() || segment.find('/') != std::string_view::npos) return;
    if (!seen_.insert(std::string(*below)).second) return;
    AddChild(listing_, {std::string(segment), directory ? EntryKind::kDirectory : EntryKind::kFile,
                        std::nullopt, std::nullopt});
  }

  const Url page_;
  Url base_;
  bool has_base_ = false;
  const std::string authority_;
  const std::string directory_;  // path, with its last '/'
  htmlParserCtxt* context_ = nullptr;
  bool in_heading_ = false;
  std::string heading_;
  std::unordered_set<std::string> seen_;
  ParsedListing listing_;
};

}  // namespace

Result<ParsedListing> ParseHtmlListing(std::string_view body, const Url& url) {
  return HtmlReader(url).Read(body);
}

}  // namespace dartfs::fs
