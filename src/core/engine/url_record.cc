#include "core/engine/url_record.h"

#include <limits>

namespace dartfs::core {

namespace {

constexpr char kFormat = 1;

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
  return out;
}

std::optional<UrlRecord> DecodeUrlRecord(std::string_view bytes) {
  if (bytes.empty() || bytes[0] != kFormat) return std::nullopt;
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
  if (!cursor.Finished() || flags > 1) return std::nullopt;
  return record;
}

}  // namespace dartfs::core
