// The table of options: one row for each, used for flags (`--cache-size 1GiB`), `-o`
// (`cache_size=1GiB`) and the TOML file (`cache-size = "1GiB"`) alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "app/options.h"

namespace dartfs::app {

// What an option is a property of, where several mounts share a node.
enum class OptionKind : uint8_t {
  kNode,     // the same for all mounts: a later mount may name it, but not with another value
  kMount,    // each mount has its own
  kProcess,  // how this process behaves
};

struct OptionRow {
  std::string_view name;     // with dashes
  std::string_view letters;  // CLI11's short names ("-f"), or empty
  std::string_view value;    // placeholder in --help; empty for a switch
  std::string_view help;
  OptionKind kind;
  // Sets one value ("true" or "false" for a switch); called once for each value given.
  // kInvalidArgument with what is expected.
  core::Status (*set)(Options& options, std::string_view value);
  // The value, exact, as `set` takes it; all values of a list; "" where there is none.
  std::string (*show)(const Options& options);
  bool is_list = false;  // several values add up; else the last one holds
};

std::span<const OptionRow> OptionTable();

// Dashes and underscores mean the same. nullptr: there is no such option.
const OptionRow* FindOption(std::string_view name);

// "; did you mean --ttl?" for the nearest name, or "" when none is near. `prefix` ("--" or "") and
// the separator of words ('-' or '_') are those of the place where the name stood.
std::string Suggest(std::string_view name, std::string_view prefix, char separator);

// Words of mount(8) and fstab that are accepted in `-o` and mean nothing to a mount that is always
// ro,nosuid,nodev: `defaults`, `_netdev`, `x-systemd.automount`, ...
bool IsMountWord(std::string_view word);

}  // namespace dartfs::app
