// Formats with a name, see named_formats.hpp.
#include "cli/commands/named_formats.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/commands/user_file.hpp"
#include "cli/usage/parser.hpp"
#include "config/document.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::commands {

namespace {

struct NamedFormat {
  std::string name;
  std::string description;
  std::string format;
};

struct BuiltIn {
  std::string_view command;
  NamedFormat format;
};

/// Returns the formats of this program for a command.
std::vector<NamedFormat> built_in(std::string_view command) {
  static const std::array<BuiltIn, 5> all{{
      {"status",
       {"long", "With the reasons of drains", "{state:>9} {up:<3} +:{nnodes:>6} ?+:{reason:<30} {nodelist}"}},
      {"list",
       {"rlist", "With cores and gpus in the short form",
        "{state:>9} +:{nnodes:>6} +:{ncores:>6} ?+:{ngpus:>5} {rlist}"}},
      {"list",
       {"queues", "With queues, and properties that are no queue",
        "{state:>9} ?+:{queue:<5} ?+:{propertiesx:<10} +:{nnodes:>6} +:{ncores:>6} ?+:{ngpus:>5} "
        "{nodelist}"}},
      {"drain",
       {"long", "With ranks and users",
        "{timestamp!d:%b%d %R::<12} {state:<9} {ranks:<8.8+} ?+:{user} ?+:{reason:<30} {nodelist}"}},
      {"drain",
       {"sinfo", "The columns of sinfo -R of Slurm",
        "{reason:<20.20} {user:<9.9} {timestamp!d:%Y-%m-%dT%H:%M:%S::<19} {nodelist}"}},
  }};
  std::vector<NamedFormat> formats{{"default", "The standard table", ""}};
  for (const auto& [of, format] : all) {
    if (of == command) formats.push_back(format);
  }
  return formats;
}

/// Returns the table of a command in a file of formats.
std::string table_of(std::string_view command) {
  std::string table(command);
  std::ranges::replace(table, ' ', '-');
  return table;
}

/// Adds the formats of the user's file for a command, which are in the table COMMAND.formats.
void add_own(std::vector<NamedFormat>& formats, std::string_view command) {
  const auto file = read_user_file();
  if (!file) return;
  const std::string table = table_of(command);
  const auto* own = member(member(file->root.get(), table), "formats");
  if (own == nullptr || own->table() == nullptr) return;
  for (const auto& [name, node] : *own->table()) {
    NamedFormat format{name, text_of(member(&node, "description")), text_of(member(&node, "format"))};
    if (format.format.find('{') == std::string::npos)
      throw Error(EINVAL, fmt::format("{}:{}: {}.formats.{}: expected format = \"...\" with fields in braces",
                                      file->path, node.line, table, name));
    if (name == "help" || std::ranges::find(formats, name, &NamedFormat::name) != formats.end())
      throw Error(EINVAL,
                  fmt::format("{}:{}: {}.formats.{}: the name is taken", file->path, node.line, table, name));
    formats.push_back(std::move(format));
  }
}

const NamedFormat* find_named(const std::vector<NamedFormat>& formats, const std::string& name) {
  const auto found = std::ranges::find(formats, name, &NamedFormat::name);
  return found == formats.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(const std::vector<NamedFormat>& formats) {
  std::vector<std::string> names;
  names.reserve(formats.size() + 1);
  for (const auto& format : formats) names.push_back(format.name);
  names.emplace_back("help");
  return names;
}

/// Returns the lines that `-o help` prints.
std::string describe(const std::vector<NamedFormat>& formats) {
  std::string list;
  for (const auto& format : formats) {
    const std::string line =
        fmt::format("{:<12} {}{}{}", format.name, format.description,
                    format.description.empty() || format.format.empty() ? "" : ": ", format.format);
    list += json_text::printable_line(line) + '\n';
  }
  return list;
}

/// Returns a string of TOML that does not control a terminal.
std::string toml_text(const std::string& text) { return json_text::printable(config::toml_string(text)); }

/// Returns a format as a file of formats has it.
std::string as_config(std::string_view command, const NamedFormat& format) {
  if (format.format.empty())
    throw UsageError(fmt::format("-o get-config={}: the standard table is no format", format.name));
  std::string lines = fmt::format("[{}.formats.{}]\n", table_of(command),
                                  json_text::printable(config::toml_key(format.name)));
  if (!format.description.empty()) lines += fmt::format("description = {}\n", toml_text(format.description));
  return lines + fmt::format("format = {}\n", toml_text(format.format));
}

}  // namespace

std::string find_format(std::string_view command, const std::string& name) {
  if (name.find_first_of("{}") != std::string::npos) return name;
  auto formats = built_in(command);
  if (const auto* found = find_named(formats, name)) return found->format;
  add_own(formats, command);
  if (name == "help") throw usage::Answer(describe(formats));
  constexpr std::string_view get_config = "get-config=";
  const bool gets_config = name.starts_with(get_config);
  const auto* found = find_named(formats, gets_config ? name.substr(get_config.size()) : name);
  if (found != nullptr && gets_config) throw usage::Answer(as_config(command, *found));
  if (found != nullptr) return found->format;
  throw UsageError(fmt::format("no format {}: known are {}; or write fields in braces, such as {{nodelist}}",
                               text::quoted(name), fmt::join(names_of(formats), ", ")));
}

std::string default_format(std::string_view command) {
  std::string variable = fmt::format("RESOURCED_{}_FORMAT_DEFAULT", command);
  std::ranges::transform(variable, variable.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return {};
  try {
    return find_format(command, value);
  } catch (const usage::Answer&) {
    throw UsageError(fmt::format("${}: {} is no format", variable, value));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("${}: {}", variable, error.what()));
  }
}

std::vector<std::string> format_names(std::string_view command) {
  auto formats = built_in(command);
  try {
    add_own(formats, command);
  } catch (const Error& /*the file is wrong*/) {
    formats = built_in(command);
  }
  return names_of(formats);
}

}  // namespace resourced::cli::commands
