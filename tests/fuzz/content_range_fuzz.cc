// Input: the Content-Range of an origin's answer. What is read keeps what admission.h promises, is
// read the same when written down again, and what the HTTP door writes is read as it was meant.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/engine/admission.h"
#include "httpd/range_header.h"

namespace dartfs::core {
namespace {

void CheckAgain(const ContentRange& range) {
  DARTFS_CHECK(range.first <= range.last);
  DARTFS_CHECK(!range.total || range.last < *range.total);
  const std::string total = range.total ? std::to_string(*range.total) : "*";
  const auto again = ParseContentRange("bytes " + std::to_string(range.first) + "-" +
                                       std::to_string(range.last) + "/" + total);
  DARTFS_CHECK(again && again->first == range.first && again->last == range.last);
  DARTFS_CHECK(again->total == range.total);
  if (!range.total) return;
  const auto ours = ParseContentRange(httpd::ContentRange({range.first, range.last}, *range.total));
  DARTFS_CHECK(ours && ours->first == range.first && ours->last == range.last);
}

// A head with that field is a block's only if it is the block.
void CheckBlock(std::string_view text) {
  HttpHead head;
  head.status = 206;
  head.headers = {{"Content-Range", std::string(text)}, {"ETag", "\"v\""}};
  ExpectedBlock block;
  block.first = 4;
  block.last = 7;
  block.total = 9;
  block.version = "e:\"v\"";
  block.etag = "\"v\"";
  block.what = "GET http://h/";
  const auto range = ParseContentRange(text);
  const bool fits = range && range->first == 4 && range->last == 7 && range->total == 9;
  const Status status = CheckBlockHead(head, block);
  DARTFS_CHECK(static_cast<bool>(status) == fits);
}

void Check(std::string_view text) {
  const auto range = ParseContentRange(text);
  const auto unsatisfied = ParseUnsatisfiedRange(text);
  DARTFS_CHECK(!range || !unsatisfied);
  if (range) CheckAgain(*range);
  if (unsatisfied) {
    DARTFS_CHECK(ParseUnsatisfiedRange(httpd::UnsatisfiedContentRange(*unsatisfied)) ==
                 unsatisfied);
  }
  CheckBlock(text);
}

}  // namespace
}  // namespace dartfs::core

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dartfs::core::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
