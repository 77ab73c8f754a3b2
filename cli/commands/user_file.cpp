#include "cli/commands/user_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <variant>

#include "config/document.hpp"
#include "config/toml_text.hpp"
#include "core/error.hpp"
#include "os/file.hpp"

namespace resourced::cli::commands {

namespace {

/// Returns the path of the file; nothing without a home.
std::optional<std::string> path_of_file() {
  constexpr const char* name = "/resourced/resourcectl.toml";
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::string(config) + name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return std::nullopt;
  return std::string(home) + "/.config" + name;
}

}  // namespace

std::optional<UserFile> read_user_file() {
  auto path = path_of_file();
  if (!path) return std::nullopt;
  try {
    constexpr std::size_t most_bytes = 1U << 20U;
    auto root =
        std::make_shared<config::Node>(config::parse_toml(os::read_file(*path, most_bytes), *path, 0));
    return UserFile{std::move(*path), std::move(root)};
  } catch (const Error& error) {
    if (error.errnum() == ENOENT || error.errnum() == ENOTDIR) return std::nullopt;
    throw;
  }
}

const config::Node* member(const config::Node* node, std::string_view key) {
  return node != nullptr && node->table() != nullptr ? config::find_member(*node->table(), key) : nullptr;
}

std::string text_of(const config::Node* node) {
  const auto* text = node == nullptr ? nullptr : std::get_if<std::string>(&node->value);
  return text == nullptr ? "" : *text;
}

}  // namespace resourced::cli::commands
