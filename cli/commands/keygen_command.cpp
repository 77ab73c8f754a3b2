// resourcectl keygen: writes a CURVE key pair to a new file and prints the lines for the daemon's
// configuration.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/usage/command.hpp"
#include "client/keys.hpp"
#include "config/toml_text.hpp"
#include "core/text/z85.hpp"
#include "proto/key_file.hpp"

namespace resourced::cli::commands {

namespace {

constexpr std::size_t max_name = 64;

std::string checked_name(std::string name) {
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (name.empty() || name.size() > max_name || !std::all_of(name.begin(), name.end(), is_plain)) {
    throw UsageError(fmt::format("--name: expected 1 to {} printable characters without blanks", max_name));
  }
  return name;
}

/// Returns the argument if it has the form of a key, and reads the key file of this name otherwise.
std::string read_public_key(const std::string& key_or_file) {
  return text::is_z85_key(key_or_file) ? key_or_file : proto::load_public_key(key_or_file);
}

}  // namespace

void register_keygen(usage::Command& app, Context& context) {
  struct KeygenOptions {
    std::string file;
    std::string name;
    std::string server_key;
  };
  auto options = std::make_shared<KeygenOptions>();
  auto* keygen = app.add_subcommand(
      "keygen", "Make a CURVE key pair in a new file, and print the lines for the daemon's configuration");
  keygen->add_option("FILE", options->file, "The new file; only its owner can read it")->required();
  keygen
      ->add_option("--name", options->name,
                   "The name of the key in configuration and logs; default: the name of FILE")
      ->type_name("NAME");
  keygen
      ->add_option(
          "--server-key", options->server_key,
          "The public key of the daemon to which clients connect with this key, or a key file that has it")
      ->type_name("KEY");
  keygen->callback([options, &context] {
    const std::string name = checked_name(
        options->name.empty() ? std::filesystem::path(options->file).stem().string() : options->name);
    const std::string server_key =
        options->server_key.empty() ? std::string() : read_public_key(options->server_key);
    proto::KeyFile keys = client::make_keys(name);
    keys.server_key = server_key;
    proto::create_key_file(options->file, keys);
    context.print_line("[[access.key]]");
    context.print_line(fmt::format("name = {}", config::toml_string(keys.name)));
    context.print_line(fmt::format("public-key = {}", config::toml_string(keys.public_key)));
    context.print_line("roles = [\"user\"]");
  });
}

}  // namespace resourced::cli::commands
