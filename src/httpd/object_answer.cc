#include "httpd/object_answer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "httpd/conditions.h"
#include "httpd/object_body.h"
#include "httpd/range_header.h"

namespace dartfs::httpd {
namespace {

using core::Object;

constexpr const char* kDefaultType = "application/octet-stream";
// Looked at for X-Cache: of longer answers these say enough.
constexpr uint64_t kBlocksLookedAt = 64;
// Whoever names the last byte, or wants all, takes it most often; whoever says "from here on" may
// want but a glance.
constexpr uint64_t kFirstBlocks = 4;
constexpr uint64_t kFirstBlocksOfOpenRange = 2;

// A request's fields stay in place while this is used.
struct ConditionFields {
  explicit ConditionFields(const Request& request) {
    if (!HasAny(request)) return;
    if_match = request.Find("If-Match");
    if_none_match = request.Find("If-None-Match");
    if_modified_since = request.Find("If-Modified-Since");
    if_unmodified_since = request.Find("If-Unmodified-Since");
    if_range = request.Find("If-Range");
  }
  Conditions view() const {
    return {if_match, if_none_match, if_modified_since, if_unmodified_since, if_range};
  }
  static bool HasAny(const Request& request) {
    return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
      return core::EqualsIgnoreCase(std::string_view(header.name).substr(0, 3), "If-");
    });
  }
  std::optional<std::string> if_match, if_none_match, if_modified_since, if_unmodified_since,
      if_range;
};

BytesFrom WhereFrom(core::Store& store, const Object& object, const std::vector<ByteRange>& parts) {
  const core::Grid& grid = GridOf(object);
  const uint64_t all = grid.BlockCount(object.size());
  if (store.PresentBlocks(*object.stored()) == all) return BytesFrom::kHit;
  uint64_t looked_at = 0;
  for (const ByteRange& part : parts) {
    const uint64_t last = grid.BlockOfOffset(part.last);
    for (uint64_t block = grid.BlockOfOffset(part.first); block <= last; ++block) {
      if (++looked_at > kBlocksLookedAt || !store.Pin(object.stored(), block)) {
        return BytesFrom::kMiss;
      }
    }
  }
  return BytesFrom::kHit;
}

ResponseHead MakeValidators(const Object& object, const core::AnswerFields& answer) {
  ResponseHead head;
  const core::ObjectMeta& meta = object.facts().meta;
  if (!meta.etag.empty()) head.AddForeign("ETag", meta.etag);
  bool said_when = false;
  for (const auto& field : answer.headers) {
    said_when = said_when || field.name == "Last-Modified";
    head.AddForeign(field.name, field.value);
  }
  if (meta.last_modified >= 0 && !said_when) {
    head.Add("Last-Modified", core::FormatHttpDate(meta.last_modified));
  }
  return head;
}

const std::string& TypeOf(const Object& object) {
  static const std::string unknown = kDefaultType;
  const std::string& type = object.facts().meta.content_type;
  return type.empty() ? unknown : type;
}

// The lines that all answers of an object have, as long as its origin says the same of it.
struct ObjectLines {
  std::weak_ptr<const Object> object;
  std::shared_ptr<const core::AnswerFields> answer;
  std::string validators;
  std::string type;  // Content-Type and Accept-Ranges

  bool AreOf(const std::shared_ptr<Object>& other) const {
    return !object.owner_before(other) && !other.owner_before(object);
  }
};

// Made again for each answer they cost more than the rest of a small one.
const ObjectLines& LinesOf(const std::shared_ptr<Object>& object) {
  constexpr size_t kKept = 64;
  static thread_local std::array<ObjectLines, kKept> kept;
  ObjectLines& lines = kept[std::hash<Object*>()(object.get()) / alignof(Object) % kKept];
  auto answer = object->answer();
  if (lines.AreOf(object) && lines.answer == answer) return lines;
  ResponseHead type;
  type.AddForeign("Content-Type", TypeOf(*object));
  type.Add("Accept-Ranges", "bytes");
  const std::string validators = MakeValidators(*object, *answer).lines();
  lines = {object, std::move(answer), validators, type.lines()};
  return lines;
}

constexpr std::array<const char*, 5> kFromNames = {"", "HIT", "MISS", "PEER", "PASS"};
// By BytesFrom, and whether the node stands for the origin itself.
using PlaneLines = std::array<std::array<std::string, 2>, kFromNames.size()>;

PlaneLines MakePlaneLines() {
  PlaneLines lines;
  for (size_t from = 0; from < kFromNames.size(); ++from) {
    ResponseHead head;
    head.Add("Via", "1.1 dartfs");
    if (from != static_cast<size_t>(BytesFrom::kNone)) head.Add("X-Cache", kFromNames[from]);
    head.Add("X-Content-Type-Options", "nosniff");
    lines[from][0] = head.lines();
    head.Add("Content-Security-Policy", "sandbox");
    lines[from][1] = head.lines();
  }
  return lines;
}

std::string Boundary() {
  std::array<uint64_t, 2> random = {core::RealRandom().Next(), core::RealRandom().Next()};
  return core::HexEncode(std::as_bytes(std::span(random)));
}

bool IsOpenEnded(const std::optional<std::string>& range) {
  return range && core::TrimAscii(*range).ends_with('-');
}

// The parts of the object to be sent; sets status and headers.
std::vector<ByteRange> ChooseParts(const std::optional<std::string>& range, uint64_t size,
                                   ResponseHead& head) {
  head.content_length = size;
  RangeAnswer answer;
  if (range) answer = AnswerRange(*range, size);
  if (answer.kind == RangeAnswer::Kind::kUnsatisfiable) {
    head.status = 416;
    head.Add("Content-Range", UnsatisfiedContentRange(size));
    head.content_length = 0;
    return {};
  }
  if (answer.kind == RangeAnswer::Kind::kParts) {
    head.status = 206;
    return std::move(answer.parts);
  }
  if (size == 0) return {};
  return {{0, size - 1}};
}

}  // namespace

void AddClientPlane(ResponseHead& head, BytesFrom from, Standing standing) {
  static const PlaneLines lines = MakePlaneLines();
  head.AddLines(lines[static_cast<size_t>(from)][standing == Standing::kOwnOrigin ? 1 : 0]);
}

void ServeObject(core::Store& store, ExchangePtr exchange, std::shared_ptr<Object> object,
                 std::shared_ptr<const core::Requester> requester, Standing standing,
                 Reauthorize reauthorize, ErrorForm error_form) {
  const core::ObjectMeta& meta = object->facts().meta;
  const ConditionFields conditions(exchange->request());
  const Validators validators{meta.etag, meta.last_modified};
  ResponseHead head;
  const ObjectLines& lines = LinesOf(object);
  head.AddLines(lines.validators);
  const Verdict verdict = Judge(conditions.view(), validators);
  if (verdict != Verdict::kServe) {
    head.status = verdict == Verdict::kNotModified ? 304 : 412;
    head.framing = verdict == Verdict::kNotModified ? Framing::kNone : Framing::kLength;
    AddClientPlane(head, BytesFrom::kNone, standing);
    return exchange->Respond(std::move(head));
  }
  std::optional<std::string> range = exchange->request().Find("Range");
  if (range && !RangeHolds(conditions.view(), validators)) range.reset();

  ObjectParts parts;
  parts.parts = ChooseParts(range, object->size(), head);
  if (parts.parts.size() > 1) {
    parts.framing =
        std::make_unique<Multipart>(parts.parts, object->size(), TypeOf(*object), Boundary());
    head.content_length = parts.framing->length();
    head.AddForeign("Content-Type", parts.framing->ContentType());
    head.Add("Accept-Ranges", "bytes");
  } else {
    if (head.status == 206) {
      head.Add("Content-Range", ContentRange(parts.parts.front(), object->size()));
      head.content_length = parts.parts.front().length();
    }
    head.AddLines(lines.type);
  }
  AddClientPlane(head, WhereFrom(store, *object, parts.parts), standing);
  if (parts.parts.empty() || exchange->is_head()) return exchange->Respond(std::move(head));
  parts.first_blocks = IsOpenEnded(range) ? kFirstBlocksOfOpenRange : kFirstBlocks;
  parts.object = std::move(object);
  parts.requester = std::move(requester);
  parts.reauthorize = std::move(reauthorize);
  parts.error_form = error_form;
  exchange->Respond(std::move(head), std::make_unique<ObjectBody>(store, std::move(parts)));
}

}  // namespace dartfs::httpd
