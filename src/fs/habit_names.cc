#include "fs/habit_names.h"

#include <algorithm>
#include <array>

namespace dartfs::fs {

namespace {

constexpr std::array<std::string_view, 29> kNames = {
    // desktops
    ".Trash", ".directory", ".hidden", ".xdg-volume-info", ".comments", ".thumbnails",
    // removable media
    "autorun.inf", "autorun.sh", "autorun", ".autorun", ".autostart", "BDMV", "VIDEO_TS",
    "AUDIO_TS",
    // other systems' desktops, by network shares and archives
    "desktop.ini", "Desktop.ini", "Thumbs.db", ".DS_Store", ".localized", ".Spotlight-V100",
    ".Trashes", ".fseventsd", ".metadata_never_index",
    // version control, in prompts and editors
    ".git", ".hg", ".svn", ".bzr", "CVS", ".editorconfig"};

constexpr std::array<std::string_view, 2> kPrefixes = {
    ".Trash-",  // and the user's ID
    "._",       // resource forks
};

}  // namespace

bool IsAskedByHabit(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace dartfs::fs
