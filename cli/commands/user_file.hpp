// The file of a user with formats and groups, $XDG_CONFIG_HOME/resourced/resourcectl.toml.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace resourced::config {
struct Node;
}

namespace resourced::cli::commands {

struct UserFile {
  std::string path;
  /// The table of the whole file; never null.
  std::shared_ptr<const config::Node> root;
};

/// Reads the file. Returns nothing if there is none; throws Error if it cannot be read, or is no TOML.
[[nodiscard]] std::optional<UserFile> read_user_file();

/// Returns a member of a table; null without the member, or without the table.
[[nodiscard]] const config::Node* member(const config::Node* node, std::string_view key);

/// Returns the text of a node; empty if it is no text.
[[nodiscard]] std::string text_of(const config::Node* node);

}  // namespace resourced::cli::commands
