// Names: URL -> name -> URL and name -> URL -> name are identities, and no two segments share a
// name.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/url.h"
#include "fs/name_mapping.h"

using dartfs::fs::FairName;
using dartfs::fs::IsDigestedName;
using dartfs::fs::IsFileName;
using dartfs::fs::IsRest;
using dartfs::fs::IsSegment;
using dartfs::fs::LeavesDirectory;
using dartfs::fs::NameToWire;
using dartfs::fs::RestToName;
using dartfs::fs::SegmentToName;

namespace {

void CheckName(std::string_view name) {
  const auto wire = NameToWire(name);
  if (!wire) {
    DARTFS_CHECK(wire.error().code == dartfs::core::Code::kNotFound);
    return;
  }
  DARTFS_CHECK(IsFileName(name) && IsRest(wire->rest) && !LeavesDirectory(wire->rest));
  DARTFS_CHECK(wire->always_file == !IsSegment(wire->rest));
  if (!wire->always_file) {
    DARTFS_CHECK(SegmentToName(wire->rest) == name);
  } else if (const auto shown = RestToName(wire->rest)) {
    DARTFS_CHECK(NameToWire(*shown).value() == *wire);
  }
}

void CheckRest(std::string_view rest) {
  if (!IsRest(rest)) return;
  const auto name = RestToName(rest);
  if (!name) return;
  DARTFS_CHECK(IsFileName(*name));
  if (!IsDigestedName(*name) && !LeavesDirectory(rest)) {
    const auto wire = NameToWire(*name);
    DARTFS_CHECK(wire && wire->rest == rest);
  }
  if (!IsSegment(rest)) return;
  DARTFS_CHECK(name->size() <= dartfs::fs::kMaxNameBytes);
  if (const auto fair = FairName(rest)) DARTFS_CHECK(dartfs::core::PercentDecode(rest) == *fair);
}

// Both halves as segments: unlike segments, unlike names.
void CheckInjective(std::string_view a, std::string_view b) {
  if (!IsSegment(a) || !IsSegment(b)) return;
  DARTFS_CHECK((a == b) == (SegmentToName(a) == SegmentToName(b)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  CheckName(input);
  CheckRest(input);
  CheckInjective(input.substr(0, size / 2), input.substr(size / 2));
  return 0;
}
