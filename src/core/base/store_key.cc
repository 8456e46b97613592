#include "core/base/store_key.h"

#include <algorithm>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/wire_id.h"

namespace dartfs::core {
namespace {

Status CheckFields(const StoreKeyFields& fields) {
  if (fields.kind != 'u' && fields.kind != 'd') {
    return MakeError(Code::kInvalidArgument, "the kind of an object is neither u nor d");
  }
  if (fields.kind == 'u' && !fields.origin.empty()) {
    return MakeError(Code::kInvalidArgument, "an object named by its URL has no origin part");
  }
  for (const auto field : {fields.cache_namespace, fields.id, fields.origin, fields.version}) {
    if (field.find(kFieldSeparator) != std::string_view::npos) {
      return MakeError(Code::kInvalidArgument, "'" + EscapeForeign(field) +
                                                   "' holds the byte 0x1F, which separates fields");
    }
  }
  return {};
}

}  // namespace

std::optional<StoreKey> StoreKey::Parse(std::string_view hex) {
  if (hex.size() != 2 * kBytes || !IsHex(hex)) return std::nullopt;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  StoreKey key;
  for (size_t i = 0; i < kBytes; ++i) {
    key.bytes_[i] = static_cast<std::byte>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  }
  return key;
}

std::string StoreKey::ToHex() const { return HexEncode(bytes_); }

Result<StoreKey> HashStoreKey(const StoreKeyFields& fields) {
  TRY(CheckFields(fields));
  std::string text(fields.cache_namespace);
  text += kFieldSeparator;
  text += fields.kind;
  text += kFieldSeparator;
  text += fields.id;
  if (!fields.origin.empty()) {
    text += kFieldSeparator;
    text += fields.origin;
  }
  text += kFieldSeparator;
  text += fields.version;
  const auto digest = Sha256(text);
  std::array<std::byte, StoreKey::kBytes> bytes;
  std::copy_n(digest.begin(), bytes.size(), bytes.begin());
  return StoreKey(bytes);
}

}  // namespace dartfs::core
