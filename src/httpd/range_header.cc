#include "httpd/range_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

constexpr std::string_view kUnit = "bytes";

// A decimal number of any length: what is beyond any size is as good as the largest.
std::optional<uint64_t> Position(std::string_view digits) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return core::ParseUint(digits).value_or(UINT64_MAX);
}

enum class Spec : uint8_t { kMalformed, kBeyond, kRange };

// One of "a-b", "a-", "-n".
Spec ParseSpec(std::string_view spec, uint64_t size, ByteRange* range) {
  const size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return Spec::kMalformed;
  const std::string_view before = spec.substr(0, dash);
  const std::string_view after = spec.substr(dash + 1);
  if (before.empty()) {
    const auto suffix = Position(after);
    if (!suffix) return Spec::kMalformed;
    if (*suffix == 0 || size == 0) return Spec::kBeyond;
    *range = {size - std::min(*suffix, size), size - 1};
    return Spec::kRange;
  }
  const auto first = Position(before);
  const auto last = after.empty() ? std::optional(UINT64_MAX) : Position(after);
  if (!first || !last || *first > *last) return Spec::kMalformed;
  if (*first >= size) return Spec::kBeyond;
  *range = {*first, std::min(*last, size - 1)};
  return Spec::kRange;
}

bool Touch(const ByteRange& a, const ByteRange& b) {
  // Positions are below a size: adding one does not overflow.
  return a.first <= b.last + 1 && b.first <= a.last + 1;
}

// Takes in whatever it touches, in the place of the first of those.
void AddPart(std::vector<ByteRange>* parts, ByteRange added) {
  size_t at = parts->size();
  for (size_t i = parts->size(); i > 0; --i) {
    const ByteRange& part = (*parts)[i - 1];
    if (!Touch(part, added)) continue;
    added = {std::min(part.first, added.first), std::max(part.last, added.last)};
    parts->erase(parts->begin() + static_cast<ptrdiff_t>(i - 1));
    at = i - 1;
  }
  // A range that has grown may touch what was passed by already.
  const bool grown = std::any_of(parts->begin(), parts->end(),
                                 [&added](const ByteRange& part) { return Touch(part, added); });
  if (grown) return AddPart(parts, added);
  at = std::min(at, parts->size());
  parts->insert(parts->begin() + static_cast<ptrdiff_t>(at), added);
}

}  // namespace

RangeAnswer AnswerRange(std::string_view header, uint64_t size) {
  RangeAnswer answer;
  header = core::TrimAscii(header);
  const size_t equals = header.find('=');
  if (equals == std::string_view::npos) return answer;
  if (!core::EqualsIgnoreCase(header.substr(0, equals), kUnit)) return answer;
  std::vector<ByteRange> parts;
  size_t count = 0;
  for (const std::string_view item : core::Split(header.substr(equals + 1), ',')) {
    const std::string_view spec = core::TrimAscii(item);
    if (spec.empty()) continue;  // RFC 9110 section 5.6.1: empty list elements mean nothing
    ByteRange range;
    const Spec parsed = ParseSpec(spec, size, &range);
    if (parsed == Spec::kMalformed || ++count > kMostRanges) return answer;
    if (parsed == Spec::kRange) AddPart(&parts, range);
  }
  if (count == 0) return answer;
  answer.kind = parts.empty() ? RangeAnswer::Kind::kUnsatisfiable : RangeAnswer::Kind::kParts;
  answer.parts = std::move(parts);
  return answer;
}

std::string ContentRange(const ByteRange& range, uint64_t size) {
  std::string text = "bytes ";
  core::AppendNumber(range.first, &text);
  text += '-';
  core::AppendNumber(range.last, &text);
  text += '/';
  core::AppendNumber(size, &text);
  return text;
}

std::string UnsatisfiedContentRange(uint64_t size) { return fmt::format("bytes */{}", size); }

}  // namespace dartfs::httpd
