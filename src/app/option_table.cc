#include "app/option_table.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace dartfs::app {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return x == y || ((x == '-' || x == '_') && (y == '-' || y == '_'));
  });
}

// Levenshtein distance, dashes and underscores alike.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = SameName(a.substr(i, 1), b.substr(j, 1)) ? 0 : 1;
      const size_t best = std::min({row[j] + 1, row[j + 1] + 1, diagonal + change});
      diagonal = row[j + 1];
      row[j + 1] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

const OptionRow* FindOption(std::string_view name) {
  for (const OptionRow& row : OptionTable()) {
    if (SameName(row.name, name)) return &row;
  }
  return nullptr;
}

std::string Suggest(std::string_view name, std::string_view prefix, char separator) {
  constexpr size_t kLongestName = 64;  // a longer one is no slip of the finger
  if (name.empty() || name.size() > kLongestName) return "";
  const OptionRow* best = nullptr;
  size_t best_distance = name.size() / 3 + 1;
  for (const OptionRow& row : OptionTable()) {
    const size_t distance = Distance(name, row.name);
    if (distance <= best_distance && (best == nullptr || distance < best_distance)) {
      best = &row;
      best_distance = distance;
    }
  }
  if (best == nullptr) return "";
  std::string shown(best->name);
  std::replace(shown.begin(), shown.end(), '-', separator);
  return "; did you mean " + std::string(prefix) + shown + "?";
}

bool IsMountWord(std::string_view word) {
  constexpr std::string_view kWords[] = {
      "ro",
      "rw",
      "dev",
      "nodev",
      "suid",
      "nosuid",
      "exec",
      "auto",
      "noauto",
      "user",
      "nouser",
      "users",
      "owner",
      "group",
      "defaults",
      "_netdev",
      "nofail",
      "nonempty",
      "atime",
      "noatime",
      "diratime",
      "relatime",
      "norelatime",
      "nodiratime",
      "async",
      "sync",
      "dirsync",
      "lazytime",
      "nolazytime",
      "strictatime",
      "silent",
      "loud",
      "mand",
      "nomand",
      "iversion",
      "noiversion",
      "nosymfollow",
      "symfollow",
      "nostrictatime",
      "auto_unmount",
      "default_permissions",
  };
  // mount(8) adds user= by itself; the others are options of every FUSE program.
  constexpr std::string_view kBeginnings[] = {
      "x-", "X-", "comment=", "user=", "fsname=", "subtype=", "max_read="};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [word](std::string_view begin) { return word.starts_with(begin); }) ||
         std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

}  // namespace dartfs::app
