// UrlRecord: what the index keeps of a URL (table `urls`, by local ID), so that a mount shows and
// reads it with the origin gone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/engine/answer_fields.h"

namespace dartfs::core {

// Written as a format version byte, then each field with a 32-bit little-endian length before it
// (numbers: 8 bytes little-endian). Version 1 had no `fields`: they are read as none, and as what
// no shared cache may store.
struct UrlRecord {
  std::string version;        // IDENTITY.md's version text
  uint64_t size = 0;          // bytes
  std::string etag;           // as sent
  std::string last_modified;  // as sent
  std::string content_type;
  bool range_blind = false;
  int64_t seen_unix = 0;  // seconds since the epoch, of the last answer that said so
  AnswerFields fields;
  bool via_redirect = false;  // the URL itself answers with a redirect

  bool operator==(const UrlRecord&) const = default;
};

std::string EncodeUrlRecord(const UrlRecord& record);
// nullopt for anything EncodeUrlRecord did not write.
std::optional<UrlRecord> DecodeUrlRecord(std::string_view bytes);

}  // namespace dartfs::core
