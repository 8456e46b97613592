// Input: three lines: a URL, a reference, any bytes. URL parsing, resolution, percent-encoding and
// the wire ID keep what url.h and wire_id.h promise.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "core/base/wire_id.h"

namespace dartfs::core {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Url WithoutUserinfo(Url url) {
  url.userinfo.clear();
  return url;
}

// Every part is what its comment in url.h says.
void CheckParts(const Url& url) {
  DARTFS_CHECK(url.scheme == "http" || url.scheme == "https");
  DARTFS_CHECK(!url.host.empty() && url.host == ToLowerAscii(url.host));
  DARTFS_CHECK(url.host.find_first_of("/?#@%\\ ") == std::string::npos);
  DARTFS_CHECK(url.port.size() <= 5 && url.EffectivePort() != 0);
  DARTFS_CHECK(url.path.starts_with('/') && url.path.find_first_of("?#") == std::string::npos);
  DARTFS_CHECK(!url.query || !Contains(*url.query, "#"));
  const std::string text = url.ToString() + url.userinfo;
  for (const char c : text) DARTFS_CHECK(c >= 0x21 && c <= 0x7E);
  DARTFS_CHECK(url.Login().has_value() == !url.userinfo.empty());
}

void CheckRoundTrip(const Url& url) {
  const auto again = ParseUrl(url.ToString());
  DARTFS_CHECK(again.has_value() && *again == WithoutUserinfo(url));
  DARTFS_CHECK(again->ToString() == url.ToString());
  const auto authority = ParseUrl(url.Authority());
  DARTFS_CHECK(authority.has_value() && authority->Authority() == url.Authority());
  const auto host_port = ParseUrl(url.scheme + "://" + url.HostPort());
  DARTFS_CHECK(host_port.has_value() && host_port->Authority() == url.Authority());
}

// The path and query stand in the text as they were written.
void CheckBytesKept(std::string_view text, const Url& url) {
  const std::string_view without_fragment = text.substr(0, text.find('#'));
  if (url.query) DARTFS_CHECK(without_fragment.ends_with(url.RequestTarget()) || url.path == "/");
  if (!url.query) DARTFS_CHECK(without_fragment.ends_with(url.path) || url.path == "/");
}

void CheckResolution(const Url& base, std::string_view reference) {
  const auto self = ResolveReference(base, "");
  DARTFS_CHECK(self.has_value() && *self == base);
  const auto got = ResolveReference(base, reference);
  if (!got) return;
  CheckParts(*got);
  CheckRoundTrip(*got);
  DARTFS_CHECK(got->userinfo.empty() || got->userinfo == base.userinfo ||
               Contains(reference, got->userinfo + "@"));
  if (reference.empty() || reference[0] == '?' || reference[0] == '#') return;
  const std::string path = got->path + "/";
  DARTFS_CHECK(!Contains(path, "/./") && !Contains(path, "/../"));
  const auto again = ResolveReference(base, got->ToString());
  DARTFS_CHECK(again.has_value() && *again == WithoutUserinfo(*got));
}

void CheckWireId(std::string_view text) {
  for (const bool oci_digest_only : {false, true}) {
    const std::string id = WireId(text, oci_digest_only);
    DARTFS_CHECK(!Contains(id, std::string_view(&kFieldSeparator, 1)));
    const uint64_t key = MakeChunkKey("dart", id, 0);
    DARTFS_CHECK(ParseKey(FormatKey(key)) == key);
    DARTFS_CHECK(MakeFileKey("dart", id) == MakeChunkKey("dart", id, UINT64_MAX));
  }
}

void CheckPercent(std::string_view bytes) {
  for (const UrlSet set : {UrlSet::kPath, UrlSet::kSegment, UrlSet::kUnreserved}) {
    DARTFS_CHECK(PercentDecode(PercentEncode(bytes, set)) == bytes);
  }
  const std::string once = PercentEncode(bytes, UrlSet::kUrl);
  DARTFS_CHECK(PercentEncode(once, UrlSet::kUrl) == once);
  if (const auto decoded = PercentDecode(bytes)) {
    DARTFS_CHECK(PercentDecode(PercentEncode(*decoded, UrlSet::kSegment)) == decoded);
  }
  // A name as one segment is seen again as that segment.
  const auto url = ParseUrl("http://h/" + PercentEncode(bytes, UrlSet::kSegment));
  if (url) DARTFS_CHECK(PercentDecode(url->path.substr(1)) == bytes);
}

void FuzzUrl(std::string_view input) {
  auto lines = Split(input, '\n');
  lines.resize(3);
  CheckWireId(lines[0]);
  CheckPercent(lines[2]);
  const auto url = ParseUrl(lines[0]);
  if (!url) return;
  CheckParts(*url);
  CheckRoundTrip(*url);
  CheckBytesKept(lines[0], *url);
  CheckResolution(*url, lines[1]);
  DARTFS_CHECK(WireId(*url, false) == WireId(url->ToString(), false));
}

}  // namespace
}  // namespace dartfs::core

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dartfs::core::FuzzUrl({reinterpret_cast<const char*>(data), size});
  return 0;
}
