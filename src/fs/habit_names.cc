#include "fs/habit_names.h"

#include <algorithm>
#include <array>

namespace dartfs::fs {

namespace {

constexpr std::array<std::string_view, 16> kNames = {
    // desktops
    ".Trash", ".directory", ".xdg-volume-info",
    // removable media
    "autorun.inf", ".autorun",
    // other systems' desktops, by network shares and archives
    "desktop.ini", "Desktop.ini", "Thumbs.db", ".DS_Store", ".Spotlight-V100", ".Trashes",
    ".fseventsd",
    // version control, in prompts and editors
    ".git", ".hg", ".svn", ".bzr"};

constexpr std::string_view kTrashOfUser = ".Trash-";  // and the user's ID

}  // namespace

bool IsAskedByHabit(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         name.starts_with(kTrashOfUser);
}

}  // namespace dartfs::fs
