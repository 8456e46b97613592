#include "core/io/peer_message.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"
#include "core/base/wire_id.h"

namespace dartfs::core {
namespace {

constexpr const char* kOriginHeader = "X-DART-Origin";
constexpr const char* kHopHeader = "X-DART-Hop";
constexpr const char* kEpochHeader = "X-DART-Epoch";
constexpr const char* kNodeHeader = "X-DART-Node";
constexpr const char* kUpstreamStatusHeader = "X-DART-Upstream-Status";
constexpr const char* kObjectHeader = "X-DARTFS-Object";
constexpr const char* kPathHeader = "X-DARTFS-Path";
constexpr const char* kDeadlineHeader = "X-DARTFS-Deadline";
constexpr const char* kTraceHeader = "X-DARTFS-Trace";
constexpr const char* kChecksumHeader = "X-DARTFS-Checksum";
constexpr const char* kBusyHeader = "X-DARTFS-Busy";

constexpr std::string_view kBlockPrefix = "/peer/v1/block/";
constexpr std::string_view kChecksumPrefix = "xxh3-64/262144 ";
constexpr size_t kHexDigits = 16;
// A request passes 64 nodes at most, each with an ID of a host name's length.
constexpr size_t kMaxPath = 64;
constexpr size_t kMaxId = 256;
// Of a block of 1 GiB, the largest there is.
constexpr size_t kMaxChecksums = 4096;
constexpr uint64_t kMaxMillis = 24 * 3600 * 1000;

// The value of the only header of that name; more than one is an error.
Result<std::optional<std::string_view>> FindOnly(std::span<const HttpHeader> headers,
                                                 std::string_view name) {
  std::optional<std::string_view> found;
  for (const HttpHeader& header : headers) {
    if (!EqualsIgnoreCase(header.name, name)) continue;
    if (found) return MakeError(Code::kInvalidArgument, fmt::format("{} is there twice", name));
    found = TrimAscii(header.value);
  }
  return found;
}

std::optional<uint64_t> ParseHex16(std::string_view text) {
  if (text.size() != kHexDigits || !IsHex(text)) return std::nullopt;
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

std::optional<Duration> ParseMillis(std::string_view text) {
  const auto millis = ParseUint(text);
  if (!millis) return std::nullopt;
  return std::chrono::milliseconds(std::min(*millis, kMaxMillis));
}

bool IsDecimal(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Any number of digits: what is too large for us is beyond every limit as well.
std::optional<uint32_t> ParseHop(std::string_view text) {
  if (!IsDecimal(text)) return std::nullopt;
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::min(ParseUint(text).value_or(kMost), kMost));
}

std::optional<std::vector<std::string>> ParsePath(std::string_view text) {
  std::vector<std::string> path;
  for (const std::string_view id : Split(text, ' ')) {
    const bool visible =
        std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    const bool fits = !id.empty() && id.size() <= kMaxId && path.size() < kMaxPath;
    if (!fits || !visible) return std::nullopt;
    path.emplace_back(id);
  }
  return path;
}

// Reads one header into `out`, or says that it is none.
template <typename T, typename Parse>
Status Read(std::span<const HttpHeader> headers, std::string_view name, Parse parse, T* out) {
  TRY_ASSIGN(const auto value, FindOnly(headers, name));
  if (!value) return {};
  auto parsed = parse(*value);
  if (!parsed) return MakeError(Code::kInvalidArgument, fmt::format("{} is malformed", name));
  *out = std::move(*parsed);
  return {};
}

}  // namespace

std::optional<BlockPath> ParseBlockPath(std::string_view path) {
  if (!path.starts_with(kBlockPrefix)) return std::nullopt;
  path.remove_prefix(kBlockPrefix.size());
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto key = ParseKey(path.substr(0, slash));
  const auto block = ParseUint(path.substr(slash + 1));
  if (!key || !block) return std::nullopt;
  return BlockPath{*key, *block};
}

std::string FormatBlockPath(const BlockPath& path) {
  return fmt::format("{}{}/{}", kBlockPrefix, FormatKey(path.chunk_key), path.block);
}

Result<BlockRequestHead> ReadBlockRequest(std::span<const HttpHeader> headers) {
  BlockRequestHead head;
  TRY_ASSIGN(const auto origin, FindOnly(headers, kOriginHeader));
  head.origin = origin.value_or("");
  TRY(Read(headers, kHopHeader, ParseHop, &head.hop));
  TRY(Read(headers, kObjectHeader, StoreKey::Parse, &head.object));
  TRY(Read(headers, kPathHeader, ParsePath, &head.path));
  TRY(Read(headers, kDeadlineHeader, ParseMillis, &head.patience));
  TRY(Read(headers, kTraceHeader, ParseHex16, &head.trace));
  TRY_ASSIGN(const auto epoch, FindOnly(headers, kEpochHeader));
  if (epoch) head.epoch = ParseUint(*epoch);
  return head;
}

std::vector<HttpHeader> WriteBlockRequest(const BlockRequestHead& head) {
  std::vector<HttpHeader> headers;
  if (!head.origin.empty()) headers.push_back({kOriginHeader, head.origin});
  headers.push_back({kHopHeader, std::to_string(head.hop)});
  if (head.epoch) headers.push_back({kEpochHeader, std::to_string(*head.epoch)});
  if (head.object) headers.push_back({kObjectHeader, head.object->ToHex()});
  if (!head.path.empty()) {
    headers.push_back({kPathHeader, fmt::format("{}", fmt::join(head.path, " "))});
  }
  if (head.patience) {
    headers.push_back(
        {kDeadlineHeader, std::to_string(std::max<int64_t>(ToMillis(*head.patience), 0))});
  }
  if (head.trace) headers.push_back({kTraceHeader, fmt::format("{:016x}", *head.trace)});
  return headers;
}

Result<std::optional<std::vector<uint64_t>>> ParseChecksums(std::string_view value) {
  std::optional<std::vector<uint64_t>> checksums;
  if (!value.starts_with(kChecksumPrefix)) return checksums;
  checksums.emplace();
  for (const std::string_view text : Split(value.substr(kChecksumPrefix.size()), ',')) {
    const auto checksum = ParseHex16(text);
    if (!checksum || checksums->size() >= kMaxChecksums) {
      return MakeError(Code::kBadResponse, "the list of checksums is malformed");
    }
    checksums->push_back(*checksum);
  }
  return checksums;
}

std::string FormatChecksums(std::span<const uint64_t> checksums) {
  std::string text(kChecksumPrefix);
  for (size_t i = 0; i < checksums.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}{:016x}", i > 0 ? "," : "", checksums[i]);
  }
  return text;
}

Result<BlockAnswerHead> ReadBlockAnswer(std::span<const HttpHeader> headers) {
  const auto find = [headers](std::string_view name) {
    const auto found = FindOnly(headers, name);
    return found && *found ? *found : std::nullopt;
  };
  BlockAnswerHead head;
  head.node = find(kNodeHeader).value_or("");
  if (const auto text = find(kEpochHeader)) head.epoch = ParseUint(*text);
  if (const auto text = find(kObjectHeader)) head.object = StoreKey::Parse(*text);
  if (const auto text = find(kBusyHeader)) head.busy = ParseMillis(*text);
  if (const auto text = find(kUpstreamStatusHeader)) {
    const auto status = ParseUint(*text);
    if (status == 401U || status == 403U) head.upstream_status = static_cast<int>(*status);
  }
  const auto list = FindOnly(headers, kChecksumHeader);
  if (!list) return MakeError(Code::kBadResponse, list.error().context);
  if (*list) {
    TRY_ASSIGN(head.checksums, ParseChecksums(**list));
  }
  return head;
}

std::vector<HttpHeader> WriteBlockAnswer(const BlockAnswerHead& head) {
  std::vector<HttpHeader> headers;
  if (!head.node.empty()) headers.push_back({kNodeHeader, head.node});
  if (head.epoch) headers.push_back({kEpochHeader, std::to_string(*head.epoch)});
  if (head.upstream_status) {
    headers.push_back({kUpstreamStatusHeader, std::to_string(*head.upstream_status)});
  }
  if (head.object) headers.push_back({kObjectHeader, head.object->ToHex()});
  if (head.checksums) headers.push_back({kChecksumHeader, FormatChecksums(*head.checksums)});
  if (head.busy) {
    headers.push_back({kBusyHeader, std::to_string(std::max<int64_t>(ToMillis(*head.busy), 0))});
  }
  return headers;
}

}  // namespace dartfs::core
