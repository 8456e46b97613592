// Input: a path, a line's end, then headers "name: value" a line. What is believed of a peer's
// message is within its bounds, and is read again as it was once it is written.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/io/peer_message.h"

namespace dartfs::core {
namespace {

std::vector<HttpHeader> ReadHeaders(std::string_view text) {
  std::vector<HttpHeader> headers;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    headers.push_back({std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))});
  }
  return headers;
}

void CheckRequest(const std::vector<HttpHeader>& headers) {
  const auto read = ReadBlockRequest(headers);
  if (!read) {
    DARTFS_CHECK(read.error().code == Code::kInvalidArgument);
    return;
  }
  DARTFS_CHECK(read->path.size() <= 64);
  DARTFS_CHECK(!read->patience || *read->patience <= std::chrono::hours(24));
  const auto written = WriteBlockRequest(*read);
  const auto again = ReadBlockRequest(written);
  DARTFS_CHECK(again && WriteBlockRequest(*again) == written);
}

void CheckAnswer(const std::vector<HttpHeader>& headers) {
  const auto read = ReadBlockAnswer(headers);
  if (!read) {
    DARTFS_CHECK(read.error().code == Code::kBadResponse);
    return;
  }
  DARTFS_CHECK(!read->checksums || (!read->checksums->empty() && read->checksums->size() <= 4096));
  DARTFS_CHECK(!read->upstream_status || *read->upstream_status / 100 == 4);
  const auto written = WriteBlockAnswer(*read);
  const auto again = ReadBlockAnswer(written);
  DARTFS_CHECK(again && WriteBlockAnswer(*again) == written);
}

void Check(std::string_view text) {
  const size_t end = text.find('\n');
  if (const auto path = ParseBlockPath(text.substr(0, end))) {
    DARTFS_CHECK(ParseBlockPath(FormatBlockPath(*path)) == *path);
  }
  if (end == text.npos) return;
  const auto headers = ReadHeaders(text.substr(end + 1));
  CheckRequest(headers);
  CheckAnswer(headers);
}

}  // namespace
}  // namespace dartfs::core

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dartfs::core::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
