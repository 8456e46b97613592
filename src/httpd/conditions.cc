#include "httpd/conditions.h"

#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

enum class Compare : uint8_t { kStrong, kWeak };

bool IsWeak(std::string_view tag) { return tag.starts_with("W/"); }
std::string_view Opaque(std::string_view tag) { return IsWeak(tag) ? tag.substr(2) : tag; }

bool SameTag(std::string_view a, std::string_view b, Compare how) {
  if (how == Compare::kStrong && (IsWeak(a) || IsWeak(b))) return false;
  return Opaque(a) == Opaque(b);
}

// The tag at the list's head, cut off it; nullopt where there is none.
std::optional<std::string_view> TakeTag(std::string_view* list) {
  const size_t open = IsWeak(*list) ? 2 : 0;
  if (list->size() <= open || (*list)[open] != '"') return std::nullopt;
  const size_t close = list->find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view tag = list->substr(0, close + 1);
  list->remove_prefix(close + 1);
  return tag;
}

void SkipSeparators(std::string_view* list) {
  const size_t next = list->find_first_not_of(", \t");
  list->remove_prefix(next == std::string_view::npos ? list->size() : next);
}

enum class Listed : uint8_t { kYes, kNo, kMalformed };

// Whether the field "*" or a list of entity tags names `etag`. "*" names whatever there is.
Listed IsListed(std::string_view field, std::string_view etag, Compare how) {
  field = core::TrimAscii(field);
  if (field == "*") return Listed::kYes;
  bool found = false;
  bool any = false;
  for (SkipSeparators(&field); !field.empty(); SkipSeparators(&field)) {
    const auto tag = TakeTag(&field);
    if (!tag) return Listed::kMalformed;
    any = true;
    found = found || (!etag.empty() && SameTag(*tag, etag, how));
  }
  if (!any) return Listed::kMalformed;
  return found ? Listed::kYes : Listed::kNo;
}

// Whether it was changed after the date of the field; nullopt where that can't be told.
std::optional<bool> ChangedSince(std::optional<std::string_view> field, int64_t last_modified) {
  if (!field || last_modified < 0) return std::nullopt;
  const auto date = core::ParseHttpDate(core::TrimAscii(*field));
  if (!date) return std::nullopt;
  return last_modified > *date;
}

}  // namespace

Verdict Judge(const Conditions& conditions, const Validators& validators) {
  if (conditions.if_match) {
    if (IsListed(*conditions.if_match, validators.etag, Compare::kStrong) != Listed::kYes) {
      return Verdict::kPreconditionFailed;
    }
  } else if (ChangedSince(conditions.if_unmodified_since, validators.last_modified) == true) {
    return Verdict::kPreconditionFailed;
  }
  if (conditions.if_none_match) {
    const Listed listed = IsListed(*conditions.if_none_match, validators.etag, Compare::kWeak);
    if (listed != Listed::kMalformed) {
      return listed == Listed::kYes ? Verdict::kNotModified : Verdict::kServe;
    }
  }
  const auto changed = ChangedSince(conditions.if_modified_since, validators.last_modified);
  return changed == false ? Verdict::kNotModified : Verdict::kServe;
}

bool RangeHolds(const Conditions& conditions, const Validators& validators) {
  if (!conditions.if_range) return true;
  const std::string_view tag = core::TrimAscii(*conditions.if_range);
  return tag.starts_with('"') && SameTag(tag, validators.etag, Compare::kStrong);
}

}  // namespace dartfs::httpd
