// Body: what an answer is made of, pulled piece by piece by its connection on that one's event
// thread: the client's socket decides when and how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "core/base/result.h"
#include "core/base/unique_function.h"

namespace dartfs::httpd {

// Who gave an answer's bytes: X-Cache, and the access log.
enum class BytesFrom : uint8_t { kNone, kHit, kMiss, kPeer, kPass };  // kNone: this node's own
inline constexpr size_t kBytesFrom = 5;

// Bytes that stay valid while `keep` is held.
struct MemoryPiece {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
  BytesFrom from = BytesFrom::kNone;
};

// Bytes [offset, offset + length) of an open file, checked already and in the page cache: sendfile
// of them does not wait for the disk. They stay as they are while `keep` is held.
struct FilePiece {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t length = 0;
  std::shared_ptr<const void> keep;
  BytesFrom from = BytesFrom::kHit;
};

struct NotYet {};
struct BodyEnd {};

using BodyStep = std::variant<MemoryPiece, FilePiece, NotYet, BodyEnd, core::Error>;
using BodyWaker = core::UniqueFunction<void()>;

struct TextAnswer;
// How an error is told to a client that has got nothing yet.
using ErrorForm = TextAnswer (*)(const core::Error& error);

class Body {
 public:
  virtual ~Body() = default;
  // Of an error of the first Next; null: as ErrorAnswer has it.
  virtual ErrorForm error_form() const { return nullptr; }
  // The next piece, of at most `max` bytes, never empty. NotYet: `wake` will run once, on any
  // thread or on the caller's stack; otherwise it is dropped. After BodyEnd or an Error nothing
  // follows. Does not block.
  virtual BodyStep Next(uint64_t max, BodyWaker wake) = 0;
  // The client takes nothing at present: what memory is held for it may be given back. True: the
  // last `unsent` bytes of the last piece are not needed any more, Next will give them again.
  virtual bool Rest(uint64_t unsent) {
    (void)unsent;
    return false;
  }
};

// All of `text`.
std::unique_ptr<Body> MakeTextBody(std::string text);

}  // namespace dartfs::httpd
