// The command line of resourcectl, see program.hpp.
#include "cli/program.hpp"

#include <cerrno>
#include <cstddef>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"

namespace resourced::cli {

namespace {

// For an option with several values CLI11 splits `[a,b]` into two, but brackets are part of idsets, hostlists
// and shapes here. So an argument in brackets gets a mark before the parsing, which is removed afterwards.

/// A control character, which no valid argument starts with.
constexpr char mark = '\x01';

/// Removes the marks from a value or message of CLI11.
std::string without_marks(std::string text) {
  std::erase(text, mark);
  return text;
}

/// The arguments of a program in the order that CLI11 wants, last first and without the program itself.
std::vector<std::string> protect_brackets(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view argument = argv[i];
    const bool in_brackets = argument.starts_with('[') && argument.ends_with(']');
    arguments.push_back(in_brackets ? mark + std::string(argument) : std::string(argument));
  }
  return arguments;
}

/// The number of arguments behind the first `--`, if there is one.
std::optional<std::size_t> count_behind_dashes(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") return static_cast<std::size_t>(argc - i - 1);
  }
  return std::nullopt;
}

/// Removes the mark from the values of every option of the program and its subcommands.
void accept_protected_brackets(CLI::App& app) {
  const CLI::Validator take_off(
      [](std::string& text) {
        text = without_marks(std::move(text));
        return std::string();
      },
      "");
  for (auto* option : app.get_options()) option->transform(take_off);
  for (auto* command : app.get_subcommands({})) accept_protected_brackets(*command);
}

constexpr const char* description =
    "Shows and changes the resources that resourced holds, and works with their text forms.";

void build(CLI::App& app, commands::Context& context) {
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", "resourcectl " RESOURCED_VERSION);
  app.add_option("--uri", context.uri,
                 "The daemon's bus; default: $RESOURCED_URI, or the daemon of this user or host");
  app.add_option("--key", context.key_file,
                 "The file with the keys for a tcp: bus, made by keygen; default: $RESOURCED_KEY");
  // Options of the program may also follow the subcommand.
  app.fallthrough();

  commands::register_status(app, context);
  commands::register_inventory(app, context);
  commands::register_drain(app, context);
  commands::register_acquire(app, context);
  commands::register_changes(app, context);
  commands::register_allocations(app, context);
  commands::register_rolling(app, context);
  commands::register_eventlog(app, context);
  commands::register_daemon(app, context);
  commands::register_keygen(app, context);
  commands::register_text_forms(app, context);
  auto* r = app.add_subcommand("R", "Resource sets (RFC 20)");
  r->require_subcommand(1);
  commands::register_r_show(*r, context);
  commands::register_r_make(*r, context);
  commands::register_r_decode(*r, context);
  commands::register_r_combine(*r, context);
  commands::register_requests(app, context);
  commands::register_feasibility(app, context);
}

/// Prints a failure as one line; control characters in the text are escaped.
int fail(std::ostream& err, std::string_view text, ExitStatus status) {
  err << "resourcectl: " << json_text::printable_line(text) << '\n';
  return static_cast<int>(status);
}

}  // namespace

int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err,
        bool terminal, const commands::Clock& now, client::Milliseconds timeout, bool interactive) {
  CLI::App app(description, "resourcectl");
  commands::Context context(in, out, terminal, interactive, now, timeout);
  context.words_behind_dashes = count_behind_dashes(argc, argv);
  try {
    build(app, context);
    accept_protected_brackets(app);
    app.parse(protect_brackets(argc, argv));
    out.flush();
    if (!out) throw Error(EIO, "cannot write to standard output");
    return static_cast<int>(ExitStatus::done);
  } catch (const CLI::Success& wanted) {
    // --help and --version
    app.exit(wanted, out, err);
    return static_cast<int>(ExitStatus::done);
  } catch (const CLI::ParseError& error) {
    return fail(err, without_marks(error.what()), ExitStatus::usage);
  } catch (const commands::DetailedError& error) {
    const auto status = fail(err, error.what(), ExitStatus::failed);
    err << error.detail() << '\n';
    return status;
  } catch (const commands::UsageError& error) {
    return fail(err, error.what(), ExitStatus::usage);
  } catch (const nlohmann::json::exception& error) {
    return fail(err, std::string("the daemon's answer: ") + error.what(), ExitStatus::failed);
  } catch (const std::exception& error) {
    return fail(err, error.what(), ExitStatus::failed);
  }
}

}  // namespace resourced::cli
