#include "core/engine/url_record.h"

#include <limits>
#include <utility>

namespace dartfs::core {

namespace {

constexpr char kFormat = 2;
constexpr char kFormatWithoutFields = 1;
constexpr uint64_t kMaxFields = 16;

void PutNumber(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void PutText(std::string* out, std::string_view text) {
  PutNumber(out, text.size(), 4);
  out->append(text);
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  uint64_t Number(int bytes) {
    if (rest_.size() < static_cast<size_t>(bytes)) return Fail();
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(rest_[static_cast<size_t>(i)])} << (8 * i);
    }
    rest_.remove_prefix(static_cast<size_t>(bytes));
    return value;
  }
  std::string Text() {
    const uint64_t length = Number(4);
    if (length > rest_.size()) {
      Fail();
      return {};
    }
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }
  bool Failed() const { return !ok_; }
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  uint64_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

void PutFields(std::string* out, const UrlRecord& record) {
  PutNumber(out, static_cast<uint64_t>(record.fields.shared_cacheable), 1);
  PutNumber(out, static_cast<uint64_t>(record.via_redirect), 1);
  PutNumber(out, record.fields.headers.size(), 1);
  for (const HttpHeader& header : record.fields.headers) {
    PutText(out, header.name);
    PutText(out, header.value);
  }
}

// False: not PutFields'.
bool ReadFields(Cursor* cursor, UrlRecord* record) {
  const uint64_t shared = cursor->Number(1);
  const uint64_t redirect = cursor->Number(1);
  const uint64_t count = cursor->Number(1);
  if (shared > 1 || redirect > 1 || count > kMaxFields) return false;
  record->fields.shared_cacheable = shared != 0;
  record->via_redirect = redirect != 0;
  for (uint64_t i = 0; i < count && !cursor->Failed(); ++i) {
    std::string name = cursor->Text();
    record->fields.headers.push_back({std::move(name), cursor->Text()});
  }
  return true;
}

}  // namespace

std::string EncodeUrlRecord(const UrlRecord& record) {
  std::string out(1, kFormat);
  PutText(&out, record.version);
  PutNumber(&out, record.size, 8);
  PutText(&out, record.etag);
  PutText(&out, record.last_modified);
  PutText(&out, record.content_type);
  PutNumber(&out, static_cast<uint64_t>(record.range_blind), 1);
  PutNumber(&out, static_cast<uint64_t>(record.seen_unix), 8);
  PutFields(&out, record);
  return out;
}

std::optional<UrlRecord> DecodeUrlRecord(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  if (bytes[0] != kFormat && bytes[0] != kFormatWithoutFields) return std::nullopt;
  Cursor cursor(bytes.substr(1));
  UrlRecord record;
  record.version = cursor.Text();
  record.size = cursor.Number(8);
  record.etag = cursor.Text();
  record.last_modified = cursor.Text();
  record.content_type = cursor.Text();
  const uint64_t flags = cursor.Number(1);
  record.range_blind = flags != 0;
  record.seen_unix = static_cast<int64_t>(cursor.Number(8));
  if (bytes[0] == kFormatWithoutFields) {
    record.fields.shared_cacheable = false;
  } else if (!ReadFields(&cursor, &record)) {
    return std::nullopt;
  }
  if (!cursor.Finished() || flags > 1) return std::nullopt;
  return record;
}

}  // namespace dartfs::core
