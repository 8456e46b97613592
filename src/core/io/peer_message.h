// Peer messages: the heads of block requests and of their answers (WIRE.md sections 4 and 7), read
// and written here for both sides. Foreign text: everything is checked and bounded. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/store_key.h"
#include "core/base/time.h"
#include "core/io/http_client.h"

namespace dartfs::core {

struct BlockPath {
  uint64_t chunk_key = 0;
  uint64_t block = 0;  // of any size: see Grid::IsLegalBlock
  bool operator==(const BlockPath&) const = default;
};

// "/peer/v1/block/<chunk key in hex>/<block index in decimal>"; nullopt: 400.
std::optional<BlockPath> ParseBlockPath(std::string_view path);
std::string FormatBlockPath(const BlockPath& path);

struct BlockRequestHead {
  std::string origin = {};                // X-DART-Origin; empty: only what is held
  uint32_t hop = 0;                       // X-DART-Hop; more than it holds is its largest
  std::optional<uint64_t> epoch = {};     // X-DART-Epoch; unreadable is absent
  std::optional<StoreKey> object = {};    // X-DARTFS-Object
  std::vector<std::string> path = {};     // X-DARTFS-Path, the sender last
  std::optional<Duration> patience = {};  // X-DARTFS-Deadline, whole milliseconds
  std::optional<uint64_t> trace = {};     // X-DARTFS-Trace
};

// Of a request's headers. kInvalidArgument (400), with what is wrong: a hop that is no non-negative
// decimal, a header of ours that does not say what it should, or one that is there twice. Such a
// request must not be answered as if the header were absent: another object's bytes could be.
Result<BlockRequestHead> ReadBlockRequest(std::span<const HttpHeader> headers);
std::vector<HttpHeader> WriteBlockRequest(const BlockRequestHead& head);

struct BlockAnswerHead {
  std::string node = {};                                // X-DART-Node; empty: it did not say
  std::optional<uint64_t> epoch = {};                   // X-DART-Epoch
  std::optional<int> upstream_status = {};              // X-DART-Upstream-Status: 401 or 403
  std::optional<StoreKey> object = {};                  // X-DARTFS-Object
  std::optional<std::vector<uint64_t>> checksums = {};  // X-DARTFS-Checksum, one a granule
  std::optional<Duration> busy = {};                    // X-DARTFS-Busy
};

// Of an answer's headers. What is unreadable is absent, except a checksum list in our form that is
// none: kBadResponse, since whoever sends it garbles more than that.
Result<BlockAnswerHead> ReadBlockAnswer(std::span<const HttpHeader> headers);
std::vector<HttpHeader> WriteBlockAnswer(const BlockAnswerHead& head);

// The value of X-DARTFS-Checksum, as a header or a trailer; nullopt: another algorithm or granule,
// which means nothing to us.
Result<std::optional<std::vector<uint64_t>>> ParseChecksums(std::string_view value);
std::string FormatChecksums(std::span<const uint64_t> checksums);

}  // namespace dartfs::core
