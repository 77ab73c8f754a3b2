// Formats with a name, see named_formats.hpp.
#include "cli/commands/named_formats.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/usage/parser.hpp"
#include "config/document.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/quote.hpp"
#include "os/file.hpp"

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
  static const std::array<BuiltIn, 3> all{{
      {"status",
       {"long", "With the reasons of drains", "{state:>9} {up:<3} +:{nnodes:>6} ?+:{reason:<30} {nodelist}"}},
      {"list",
       {"rlist", "With cores and gpus in the short form",
        "{state:>9} +:{nnodes:>6} +:{ncores:>6} ?+:{ngpus:>5} {rlist}"}},
      {"drain",
       {"long", "With ranks and users",
        "{timestamp!d:%b%d %R::<12} {state:<9} {ranks:<8.8+} ?+:{user} ?+:{reason:<30} {nodelist}"}},
  }};
  std::vector<NamedFormat> formats{{"default", "The standard table", ""}};
  for (const auto& [of, format] : all) {
    if (of == command) formats.push_back(format);
  }
  return formats;
}

/// Returns the path of the user's file; nothing without a home.
std::optional<std::string> file_of_user() {
  constexpr const char* name = "/resourced/resourcectl.toml";
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::string(config) + name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return std::nullopt;
  return std::string(home) + "/.config" + name;
}

const config::Node* member(const config::Node* node, std::string_view key) {
  return node != nullptr && node->table() != nullptr ? config::find_member(*node->table(), key) : nullptr;
}

std::string text_of(const config::Node* node) {
  const auto* text = node == nullptr ? nullptr : std::get_if<std::string>(&node->value);
  return text == nullptr ? "" : *text;
}

/// Adds the formats of the user's file for a command, which are in the table COMMAND.formats.
void add_own(std::vector<NamedFormat>& formats, std::string_view command) {
  const auto path = file_of_user();
  if (!path) return;
  std::string text;
  try {
    constexpr std::size_t most_bytes = 1U << 20U;
    text = os::read_file(*path, most_bytes);
  } catch (const Error& error) {
    if (error.errnum() == ENOENT || error.errnum() == ENOTDIR) return;
    throw;
  }
  std::string table(command);
  std::ranges::replace(table, ' ', '-');
  const config::Node root = config::parse_toml(text, *path, 0);
  const auto* own = member(member(&root, table), "formats");
  if (own == nullptr || own->table() == nullptr) return;
  for (const auto& [name, node] : *own->table()) {
    NamedFormat format{name, text_of(member(&node, "description")), text_of(member(&node, "format"))};
    if (format.format.find('{') == std::string::npos)
      throw Error(EINVAL, fmt::format("{}:{}: {}.formats.{}: expected format = \"...\" with fields in braces",
                                      *path, node.line, table, name));
    if (name == "help" || std::ranges::find(formats, name, &NamedFormat::name) != formats.end())
      throw Error(EINVAL,
                  fmt::format("{}:{}: {}.formats.{}: the name is taken", *path, node.line, table, name));
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

}  // namespace

std::string find_format(std::string_view command, const std::string& name) {
  if (name.find_first_of("{}") != std::string::npos) return name;
  auto formats = built_in(command);
  if (const auto* found = find_named(formats, name)) return found->format;
  add_own(formats, command);
  if (name == "help") throw usage::Answer(describe(formats));
  if (const auto* found = find_named(formats, name)) return found->format;
  throw UsageError(fmt::format("no format {}: known are {}; or write fields in braces, such as {{nodelist}}",
                               text::quoted(name), fmt::join(names_of(formats), ", ")));
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
