#include "origin/behaviour.h"

#include <array>
#include <utility>

namespace dartfs::origin {
namespace {

template <typename T>
using Name = std::pair<T, const char*>;

constexpr std::array<Name<IndexFormat>, 6> kIndexFormats = {{{IndexFormat::kNginx, "nginx"},
                                                             {IndexFormat::kApache, "apache"},
                                                             {IndexFormat::kPython, "python"},
                                                             {IndexFormat::kJson, "json"},
                                                             {IndexFormat::kS3, "s3"},
                                                             {IndexFormat::kNone, "none"}}};
constexpr std::array<Name<EtagMode>, 3> kEtagModes = {
    {{EtagMode::kStrong, "strong"}, {EtagMode::kWeak, "weak"}, {EtagMode::kNone, "none"}}};
constexpr std::array<Name<EmptyRange>, 3> kEmptyRanges = {
    {{EmptyRange::k416, "416"}, {EmptyRange::k200, "200"}, {EmptyRange::k416Bare, "416-bare"}}};

template <typename Table, typename T>
const char* FindName(const Table& table, T value) {
  for (const auto& [key, name] : table) {
    if (key == value) return name;
  }
  return nullptr;
}

template <typename Table, typename T>
bool FindValue(const Table& table, const std::string& name, T& value) {
  for (const auto& [key, key_name] : table) {
    if (name != key_name) continue;
    value = key;
    return true;
  }
  return false;
}

}  // namespace

const char* NameOf(IndexFormat format) { return FindName(kIndexFormats, format); }
const char* NameOf(EtagMode mode) { return FindName(kEtagModes, mode); }
const char* NameOf(EmptyRange mode) { return FindName(kEmptyRanges, mode); }
bool ParseName(const std::string& name, IndexFormat& format) {
  return FindValue(kIndexFormats, name, format);
}
bool ParseName(const std::string& name, EtagMode& mode) {
  return FindValue(kEtagModes, name, mode);
}
bool ParseName(const std::string& name, EmptyRange& mode) {
  return FindValue(kEmptyRanges, name, mode);
}

}  // namespace dartfs::origin
