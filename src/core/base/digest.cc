#include "core/base/digest.h"

#include "core/base/text.h"

namespace dartfs::core {
namespace {

size_t HexLength(std::string_view algorithm) {
  if (algorithm == "sha256") return 64;
  if (algorithm == "sha512") return 128;
  return 0;
}

std::optional<Digest> MakeDigest(std::string_view algorithm, std::string_view hex) {
  const size_t length = HexLength(algorithm);
  if (length == 0 || hex.size() != length || !IsHex(hex)) return std::nullopt;
  return Digest{std::string(algorithm), ToLowerAscii(hex)};
}

// Cuts the last segment, without its '/', off the path; empty where there is no '/'.
std::string_view PopSegment(std::string_view& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view segment = path.substr(slash + 1);
  path = path.substr(0, slash);
  return segment;
}

}  // namespace

std::optional<Digest> ParseDigest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return MakeDigest(text.substr(0, colon), text.substr(colon + 1));
}

std::optional<Digest> RegistryBlobDigest(std::string_view path) {
  std::string_view hex = PopSegment(path);
  if (hex == "data") hex = PopSegment(path);
  const std::string_view first_two = PopSegment(path);
  const std::string_view algorithm = PopSegment(path);
  if (PopSegment(path) != "blobs" || first_two.size() != 2 || !hex.starts_with(first_two)) {
    return std::nullopt;
  }
  return MakeDigest(algorithm, hex);
}

}  // namespace dartfs::core
