// What a request is answered, before it becomes bytes: status, headers, which part of which body.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "origin/behaviour.h"
#include "origin/content.h"
#include "origin/fault.h"
#include "origin/http_text.h"

namespace dartfs::origin {

enum class Framing { kLength, kChunked, kUntilClose };

struct Answer {
  int status = 200;
  // Without Date, Connection and what frames the body.
  Headers headers;
  Framing framing = Framing::kLength;
  // The body on the wire: prefix, [range.begin, range.end) of body, suffix.
  Body body = std::make_shared<const std::string>();
  ByteRange range;
  std::string prefix;
  std::string suffix;
  bool close = false;

  std::uint64_t BodySize() const { return prefix.size() + range.size() + suffix.size(); }
  void SetBody(std::string text);
};

struct AnswerContext {
  const Request& request;
  const FiredFaults& faults;
  Content& content;
  const Behaviour& behaviour;
  std::uint64_t sequence = 0;  // another one for every request
  std::time_t now = 0;
};

// Blocks for the file system only.
Answer MakeAnswer(const AnswerContext& context);

// A short text/plain answer.
Answer TextAnswer(int status, std::string text);

// Faults (fault_answer.cc).
// Answers that replace the object's: statuses and redirects. nullopt: none fires.
std::optional<Answer> RefuseOrRedirect(const AnswerContext& context);
// The content of a path changes now.
void SwapContent(const AnswerContext& context);
// The representation changes, before conditions and ranges are looked at. False: cannot be done.
bool ChangeObject(const AnswerContext& context, Object& object, Headers& headers);
// A 206 of `asked` out of `size` bytes goes wrong. `answer` comes with the right one.
void SpoilRange(const AnswerContext& context, ByteRange asked, std::uint64_t size, Answer& answer);

// Copies [range.begin, range.end) of a body. False: the file could not be read in full.
bool ReadBody(const Body& body, ByteRange range, std::string& out);

std::string ContentRange(ByteRange range, std::uint64_t size);
void SetHeader(Headers& headers, std::string_view name, std::string value);
void RemoveHeader(Headers& headers, std::string_view name);

}  // namespace dartfs::origin
