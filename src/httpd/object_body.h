// ObjectBody: parts of an object as an answer's body: out of the page cache by sendfile, out of
// flights as they fill, off the disk where it must be; one after another, with the framing of
// multipart/byteranges between several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/object_stream.h"
#include "httpd/body.h"
#include "httpd/multipart.h"
#include "httpd/range_header.h"

namespace dartfs::httpd {

// The origin has refused, with `refusal` (a 401), the Authorization that was sent: gives another
// one to go on with, or the error to end with. `done` runs once, never on the caller's stack, or is
// dropped. Any thread.
using Reauthorize = std::function<void(const core::Error& refusal, const std::string& refused,
                                       core::UniqueFunction<void(core::Result<std::string>)> done)>;

struct ObjectParts {
  std::shared_ptr<core::Object> object;
  std::shared_ptr<const core::Requester> requester;
  std::vector<ByteRange> parts;        // one at least
  std::unique_ptr<Multipart> framing;  // null: no more than one part
  uint64_t first_blocks = 2;           // StreamOptions::first_blocks
  Reauthorize reauthorize = {};        // asked when blocks are refused; empty: that ends the body
  ErrorForm error_form = nullptr;      // Body::error_form
};

class ObjectBody final : public Body {
 public:
  // The store outlives it.
  ObjectBody(core::Store& store, ObjectParts parts);
  ~ObjectBody() override;

  BodyStep Next(uint64_t max, BodyWaker wake) override;
  bool Rest(uint64_t unsent) override;
  ErrorForm error_form() const override { return what_.error_form; }

 private:
  struct DiskRead;
  struct Renewal;
  std::optional<BodyStep> NextPart();
  std::optional<BodyStep> TakeDiskRead(BodyWaker& wake);
  std::optional<BodyStep> TakeFile(core::FileSlice slice, BodyWaker& wake);
  void OpenStream(uint64_t offset);
  bool AskAgain(const core::Error& refusal, BodyWaker& wake);
  std::optional<BodyStep> TakeRenewal(BodyWaker& wake);
  BodyStep Text(size_t index);

  core::Store& store_;
  const ObjectParts what_;
  size_t part_ = 0;             // the one under way, or about to begin
  bool framed_ = false;         // what stands before it has been given
  bool text_was_last_ = false;  // the last piece was framing
  std::unique_ptr<core::ObjectStream> stream_;
  std::shared_ptr<DiskRead> disk_;  // under way, or done and not taken
  std::shared_ptr<const core::Requester> requester_;
  std::shared_ptr<Renewal> renewal_;  // of its Authorization; under way, or done and not taken
  int refusals_ = 0;                  // in a row
};

}  // namespace dartfs::httpd
