// S3 ListObjectsV2, as its API reference describes request parameters and response elements.
#include <fmt/format.h>

#include <algorithm>

#include "origin/http_text.h"
#include "origin/index.h"

namespace dartfs::origin {
namespace {

constexpr std::size_t kMaxKeys = 1000;         // S3's own page limit
constexpr std::size_t kMaxCollected = 200000;  // of a recursive listing

struct Key {
  std::string name;
  bool common_prefix = false;
  DirectoryEntry entry;
};

std::string ToHex(std::string_view text) {
  std::string out;
  for (const char c : text) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::string FromHex(std::string_view text) {
  std::string encoded;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    encoded += '%';
    encoded += text.substr(i, 2);
  }
  return PercentDecode(encoded);
}

std::string EncodePath(std::string_view path) { return PercentEncode(path, "-._~/"); }

// Adds the keys below bucket-relative directory `dir` ("" or ending in a slash) that begin with
// `prefix`; with `flat`, its subdirectories as common prefixes, else what is in them.
void Collect(const Content& content, const std::string& bucket, const std::string& dir,
             const std::string& prefix, bool flat, std::vector<Key>& keys) {
  for (DirectoryEntry& entry : content.List(bucket + EncodePath(dir))) {
    if (keys.size() >= kMaxCollected) return;
    const std::string name = dir + entry.name + (entry.directory ? "/" : "");
    const std::size_t common = std::min(name.size(), prefix.size());
    if (name.compare(0, common, prefix, 0, common) != 0) continue;
    const bool matches = name.size() >= prefix.size();
    if (!entry.directory) {
      if (matches) keys.push_back({name, false, std::move(entry)});
    } else if (flat && matches && name != prefix) {
      keys.push_back({name, true, std::move(entry)});
    } else {
      Collect(content, bucket, name, prefix, flat, keys);
    }
  }
}

std::string IsoTime(std::time_t t) {
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &tm));
}

struct Page {
  std::string prefix;
  std::string delimiter;
  std::string after;
  std::size_t max_keys = kMaxKeys;
  bool url_encoded = false;

  std::string Text(std::string_view key) const {
    return url_encoded ? EncodePath(key) : EscapeHtml(key);
  }
};

Page ParsePage(std::string_view query) {
  Page page;
  page.prefix = QueryParameter(query, "prefix").value_or("");
  page.delimiter = QueryParameter(query, "delimiter").value_or("");
  page.after = QueryParameter(query, "start-after").value_or("");
  if (const auto token = QueryParameter(query, "continuation-token")) page.after = FromHex(*token);
  const auto max_keys = ParseNumber(QueryParameter(query, "max-keys").value_or("1000"));
  page.max_keys = std::min<std::uint64_t>(max_keys.value_or(kMaxKeys), kMaxKeys);
  page.url_encoded = QueryParameter(query, "encoding-type") == "url";
  return page;
}

std::string RenderKey(const Page& page, const Key& key) {
  if (key.common_prefix) {
    return fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", page.Text(key.name));
  }
  return fmt::format(
      "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size>"
      "<StorageClass>STANDARD</StorageClass></Contents>",
      page.Text(key.name), IsoTime(key.entry.last_modified), EscapeHtml(key.entry.etag),
      key.entry.size);
}

}  // namespace

Listing RenderS3(const Content& content, std::string_view path, std::string_view query) {
  const Page page = ParsePage(query);
  std::vector<Key> keys;
  Collect(content, std::string(path), "", page.prefix, page.delimiter == "/", keys);
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.name < b.name; });
  auto from =
      std::upper_bound(keys.begin(), keys.end(), page.after,
                       [](const std::string& after, const Key& key) { return after < key.name; });
  const auto left = static_cast<std::size_t>(keys.end() - from);
  const std::size_t count = std::min(left, page.max_keys);
  const bool truncated = count < left;

  std::string contents;
  std::string prefixes;
  std::string last;
  for (std::size_t i = 0; i < count; ++i, ++from) {
    (from->common_prefix ? prefixes : contents) += RenderKey(page, *from);
    last = from->name;
  }
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{}</Name>"
      "<Prefix>{}</Prefix>",
      EscapeHtml(path.size() > 1 ? path.substr(1, path.size() - 2) : "bucket"),
      page.Text(page.prefix));
  if (!page.delimiter.empty()) {
    out += fmt::format("<Delimiter>{}</Delimiter>", page.Text(page.delimiter));
  }
  if (page.url_encoded) out += "<EncodingType>url</EncodingType>";
  if (truncated) {
    out += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", ToHex(last));
  }
  out += fmt::format(
      "<KeyCount>{}</KeyCount><MaxKeys>{}</MaxKeys><IsTruncated>{}</IsTruncated>{}{}"
      "</ListBucketResult>",
      count, page.max_keys, truncated, contents, prefixes);
  return {std::move(out), "application/xml"};
}

Listing RenderS3Error(std::string_view code, std::string_view path) {
  return {fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code>"
                      "<Message>{}</Message><Resource>{}</Resource></Error>",
                      code, code, EscapeHtml(path)),
          "application/xml"};
}

}  // namespace dartfs::origin
