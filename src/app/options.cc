#include "app/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>

#include "app/option_table.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "fs/source.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;

// The values given to each option at one place.
using Values = std::map<const OptionRow*, std::vector<std::string>>;

core::Error Usage(std::string text) { return MakeError(Code::kInvalidArgument, std::move(text)); }

// What the command line holds before any value is looked at.
struct CommandLine {
  Values values;
  std::vector<std::string> mount_options;  // each -o
  std::string config_file;
  std::string source;
  std::string mountpoint;
  std::vector<std::string> rest;
  bool check_config = false;
  bool help = false;
  bool version = false;
};

// CLI11's parser with every row of the table in it, bound to the storage below.
class Parser {
 public:
  Parser()
      : app_("Mounts an HTTP directory, read-only, through a persistent block cache.", "dartfs") {
    app_.set_help_flag();
    app_.allow_extras();
    app_.add_option("SOURCE", line_.source, std::string(fs::kSourceForms));
    app_.add_option("MOUNTPOINT", line_.mountpoint,
                    "a directory; its content is hidden while mounted");
    AddTaking("-o", line_.mount_options, "OPT[,OPT=VALUE]", "options as mount(8) gives them");
    app_.add_option("--config", line_.config_file, "read options from a TOML file first")
        ->type_name("FILE")
        ->option_text("FILE");
    app_.add_flag("--check-config", line_.check_config, "check all options and end");
    app_.add_flag("-h,--help", line_.help, "print this and end");
    app_.add_flag("-V,--version", line_.version, "print the version and end");
    for (const OptionRow& row : OptionTable()) AddRow(row);
  }

  Result<CommandLine> Parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::Error& failure) {
      return Usage(failure.what());
    }
    line_.rest = app_.remaining();
    for (const auto& [row, given] : values_) {
      if (!given.empty()) line_.values[row] = given;
    }
    for (const auto& [row, given] : switches_) {
      if (given) line_.values[row] = {"true"};
    }
    return line_;
  }

  std::string Help() { return app_.help(); }

 private:
  void AddTaking(const std::string& names, std::vector<std::string>& into, std::string_view value,
                 std::string_view help) {
    app_.add_option(names, into, std::string(help))
        ->allow_extra_args(false)
        ->type_name(std::string(value))  // for messages
        ->option_text(std::string(value));
  }

  void AddRow(const OptionRow& row) {
    std::string names = "--" + std::string(row.name);
    if (!row.letters.empty()) names = std::string(row.letters) + "," + names;
    if (row.value.empty()) {
      app_.add_flag(names, switches_[&row], std::string(row.help));
    } else {
      AddTaking(names, values_[&row], row.value, row.help);
    }
  }

  CLI::App app_;
  CommandLine line_;
  Values values_;
  std::map<const OptionRow*, bool> switches_;
};

// Splits at commas; a backslash takes the next character as it is.
std::vector<std::string> SplitMountOptions(std::string_view text) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (text[i] == ',') {
      words.emplace_back();
    } else {
      words.back() += text[i];
    }
  }
  return words;
}

Status AddMountOption(const std::string& word, Values& values) {
  if (word.empty() || IsMountWord(word)) return {};
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const OptionRow* row = FindOption(name);
  if (row == nullptr && name == "remount") {
    return Usage("-o remount is not supported; unmount and mount again");
  }
  if (row == nullptr) {
    return Usage("-o: unknown option '" + EscapeForeign(name, 64) + "'" + Suggest(name, "", '_'));
  }
  if (equals == std::string::npos && !row->value.empty()) {
    return Usage("-o " + name + ": needs a value (" + name + "=" + std::string(row->value) + ")");
  }
  values[row].push_back(equals == std::string::npos ? "true" : word.substr(equals + 1));
  return {};
}

Result<Values> MountOptionValues(const std::vector<std::string>& texts) {
  Values values;
  for (const std::string& text : texts) {
    for (const std::string& word : SplitMountOptions(text)) TRY(AddMountOption(word, values));
  }
  return values;
}

Status AddConfigItem(const CLI::ConfigItem& item, Values& values) {
  if (!item.parents.empty()) {
    return Usage("there are no tables here: [" + EscapeForeign(item.parents.front(), 64) + "]");
  }
  const std::string& name = item.name;
  const OptionRow* row = FindOption(name);
  if (row == nullptr) {
    return Usage("unknown key '" + EscapeForeign(name, 64) + "'" + Suggest(name, "", '-'));
  }
  if (values.contains(row)) return Usage("'" + name + "' stands there twice");
  if (!row->is_list && item.inputs.size() != 1) {
    return Usage("'" + name + "' needs one value");
  }
  for (const std::string& input : item.inputs) {
    if (input.starts_with('"') || input.starts_with('\'')) {
      return Usage("'" + name + "': a string without an end (a value may not hold '#')");
    }
  }
  values[row] = item.inputs;
  return {};
}

Result<Values> ConfigFileValues(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Usage("--config: " + EscapeForeign(path) + " is a directory, not a file");
  }
  std::ifstream file(path);
  if (!file) return Usage("--config: can't read " + EscapeForeign(path));
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(file);
  } catch (const std::exception& failure) {
    return Usage(EscapeForeign(path) + ": " + EscapeForeign(failure.what()));
  }
  Values values;
  for (const CLI::ConfigItem& item : items) {
    if (Status added = AddConfigItem(item, values); !added) {
      return std::move(added).error().WithContext(EscapeForeign(path));
    }
  }
  return values;
}

// One place where options stand, and how a message names it.
struct Place {
  Values values;
  std::string shown;
};

// Sets what the last of `places` gives: the others, of higher precedence, go before it.
Status ApplyLast(std::span<const Place> places, Options& options) {
  const auto& [values, where] = places.back();
  const std::span<const Place> above = places.first(places.size() - 1);
  for (const OptionRow& row : OptionTable()) {
    const auto given = values.find(&row);
    if (given == values.end()) continue;
    if (std::any_of(above.begin(), above.end(),
                    [&row](const Place& place) { return place.values.contains(&row); })) {
      continue;
    }
    for (const std::string& value : given->second) {
      if (Status set = row.set(options, value); !set) {
        return Usage(where + std::string(row.name) + ": '" + EscapeForeign(value, 64) +
                     "': " + set.error().context);
      }
    }
  }
  return {};
}

Status CheckRest(const std::vector<std::string>& rest) {
  if (rest.empty()) return {};
  const std::string& first = rest.front();
  if (!first.starts_with('-')) {
    return Usage("one SOURCE and one MOUNTPOINT, not more: '" + core::RedactUrl(first) + "'");
  }
  const std::string name = first.substr(0, first.find('='));
  const std::string_view bare = std::string_view(name).substr(name.starts_with("--") ? 2 : 1);
  return Usage("unknown option '" + EscapeForeign(name, 64) + "'" + Suggest(bare, "--", '-'));
}

// No request is made: whether the origin answers is found out by whoever reads.
Status CheckSource(const std::string& source) {
  if (source.empty()) return Usage("no SOURCE: " + std::string(fs::kSourceForms));
  auto parsed = fs::ParseSource(source);
  if (!parsed) return std::move(parsed).error().WithContext("SOURCE");
  return {};
}

Status CheckArguments(const Options& options, bool check_config) {
  const bool has_source = !options.source.empty();
  if (options.no_mount) {
    if (!has_source) return {};
    return Usage(
        "--no-mount takes no SOURCE and MOUNTPOINT: start the node, then mount with "
        "dartfs SOURCE MOUNTPOINT and the same cache directory");
  }
  if (check_config && !has_source) return {};
  TRY(CheckSource(options.source));
  if (check_config || !options.mountpoint.empty()) return {};
  return Usage("no MOUNTPOINT: dartfs SOURCE MOUNTPOINT [-o OPTIONS]");
}

}  // namespace

Result<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                    const std::string& working_dir) {
  TRY_ASSIGN(CommandLine line, Parser().Parse(arguments));
  Invocation invocation;
  if (line.help || line.version) {
    invocation.action = line.help ? Action::kHelp : Action::kVersion;
    return invocation;
  }
  TRY(CheckRest(line.rest));
  Values file;
  if (!line.config_file.empty()) {
    if (!line.config_file.starts_with('/')) line.config_file.insert(0, working_dir + "/");
    TRY_ASSIGN(file, ConfigFileValues(line.config_file));
  }
  TRY_ASSIGN(Values mount, MountOptionValues(line.mount_options));
  const std::array<Place, 3> places = {{{std::move(line.values), "--"},
                                        {std::move(mount), "-o "},
                                        {std::move(file), EscapeForeign(line.config_file) + ": "}}};
  Options& options = invocation.options;
  for (const OptionRow& row : OptionTable()) {
    if (std::any_of(places.begin(), places.end(),
                    [&row](const Place& place) { return place.values.contains(&row); })) {
      invocation.given.push_back(&row);
    }
  }
  for (size_t count = places.size(); count > 0; --count) {
    TRY(ApplyLast(std::span(places).first(count), options));
  }
  options.source = line.source;
  options.mountpoint = line.mountpoint;
  if (line.check_config) invocation.action = Action::kCheckConfig;
  TRY(CheckArguments(options, line.check_config));
  return invocation;
}

std::string HelpText() { return Parser().Help(); }

}  // namespace dartfs::app
