// The version of an object: which generation of its bytes (IDENTITY.md, first table). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dartfs::core {

// What of an answer's head decides the version. Views are empty where the header is absent.
struct VersionInputs {
  bool fixed = false;  // content-addressed or declared immutable
  std::string_view etag = {};
  std::string_view last_modified = {};
  std::string_view date = {};
  std::optional<uint64_t> size = {};  // of the whole object
};

// Texts of different kinds never coincide: "", "e:...", "m:...", "n:...". Printable ASCII, or
// obs-text inside an ETag; never 0x1F.
struct Version {
  enum class Kind {
    kFixed,        // "": the bytes never change
    kETag,         // "e:" + the strong ETag with its quotes
    kModified,     // "m:" + Last-Modified as sent + "/" + size in decimal
    kUnversioned,  // "n:" + nonce: nothing tells generations apart; cached for its TTL only
  };
  Kind kind = Kind::kUnversioned;
  std::string text = "n:";

  bool operator==(const Version&) const = default;
  // The ETag with its quotes, for If-Match; empty for other kinds.
  std::string_view etag() const;
  // As sent, for If-Unmodified-Since; empty for other kinds.
  std::string_view last_modified() const;
};

// A strong ETag is one in quotes, without W/, not empty, of the bytes RFC 9110 section 8.8.3 allows
// and at most 1 KiB; any other is passed over. Last-Modified counts when it and Date are HTTP
// dates, it is at least 2 s older, and the size is known. An unversioned result has the text "n:",
// the same each time: a cache gives each generation its own with UnversionedGeneration.
Version MakeVersion(const VersionInputs& inputs);

// An unversioned generation kept apart from every real version and, given a nonce of its own, from
// every other generation: "n:" + 16 hex digits.
Version UnversionedGeneration(uint64_t nonce);

// The version a text (of an index record) was made of; nullopt where it is none.
std::optional<Version> ParseVersion(std::string_view text);

}  // namespace dartfs::core
