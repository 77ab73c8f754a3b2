// The command line of resourcectl, see program.hpp.
#include "cli/program.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/completion.hpp"
#include "cli/help.hpp"
#include "cli/screen/abilities.hpp"
#include "cli/screen/ascii_output.hpp"
#include "cli/usage/complete.hpp"
#include "cli/usage/describe.hpp"
#include "cli/usage/parser.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/nearest.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli {

namespace {

/// Returns the number of arguments behind the first `--`, if there is one.
std::optional<std::size_t> count_behind_dashes(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") return static_cast<std::size_t>(argc - i - 1);
  }
  return std::nullopt;
}

constexpr const char* description =
    "Shows and changes the resources that resourced holds, and works with their text forms.";

void build(usage::Command& app, commands::Context& context) {
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", "resourcectl " RESOURCED_VERSION);
  app.add_option("--uri", context.uri,
                 "The daemon's bus; default: $RESOURCED_URI, or the daemon of this user or host")
      ->type_name("URI");
  app.add_option("--key", context.key_file,
                 "The file with the keys for a tcp: bus, made by keygen; default: $RESOURCED_KEY")
      ->type_name("FILE");
  app.add_option("-L,--color", context.color,
                 "Colours: auto (on a terminal, unless $NO_COLOR is set or $TERM is dumb), always or never")
      ->type_name("WHEN")
      ->one_of({"auto", "always", "never"});
  app.add_option_function(
         "--timeout",
         [&context](const std::string& text) { context.set_timeout(commands::parse_timeout(text)); },
         "The longest wait for an answer, or for a daemon that leads, like 5s; default: 30s, and 20s for a "
         "leader")
      ->type_name("DURATION");
  // Options of the program may also follow the subcommand.
  app.falls_through = true;

  commands::register_status(app, context);
  commands::register_inventory(app, context);
  commands::register_show(app, context);
  commands::register_top(app, context);
  commands::register_report(app, context);
  commands::register_drain(app, context);
  commands::register_acquire(app, context);
  commands::register_properties(app, context);
  commands::register_changes(app, context);
  commands::register_allocations(app, context);
  commands::register_rolling(app, context);
  commands::register_eventlog(app, context);
  commands::register_daemon(app, context);
  commands::register_cluster(app, context);
  commands::register_keygen(app, context);
  commands::register_idset(app, context);
  commands::register_hostlist(app, context);
  auto* r = app.add_subcommand("R", "Resource sets (RFC 20)");
  r->require_subcommand(1);
  commands::register_r_show(*r, context);
  commands::register_r_make(*r, context);
  commands::register_r_decode(*r, context);
  commands::register_r_combine(*r, context);
  commands::register_requests(app, context);
  commands::register_feasibility(app, context);
  commands::register_slurm(app, context);
  add_help(app);
}

/// Prints a failure as one line; control characters in the text are escaped.
int fail(std::ostream& err, std::string_view text, ExitStatus status) {
  err << "resourcectl: " << json_text::printable_line(text) << '\n';
  return static_cast<int>(status);
}

/// Returns an error of one line about the first unknown word of a command line; empty if it has none.
std::string unknown_word(const usage::Command& program, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto unknown = usage::find_unknown(program, words);
  if (!unknown) return {};
  const auto& [command, word] = *unknown;
  const bool is_option = word.size() > 1 && word.starts_with('-');
  std::vector<std::string_view> names;
  for (const auto* above = command; is_option && above != nullptr; above = above->parent) {
    for (const auto& option : above->options) {
      for (const auto& name : option->names) {
        if (name.starts_with("--")) names.emplace_back(name);
      }
    }
  }
  if (!is_option) {
    for (const auto& known : command->commands) names.emplace_back(known->name);
  }
  const std::string kind = is_option ? "option" : "command";
  const std::string below = command->path();
  const std::string path = below.empty() ? program.name : fmt::format("{} {}", program.name, below);
  const auto meant = text::nearest(word, names);
  return meant ? fmt::format("unknown {} {}, did you mean {}? See {} --help", kind, text::quoted(word),
                             *meant, path)
               : fmt::format("unknown {} {}: see {} --help", kind, text::quoted(word), path);
}

/// Returns the text of a usage error. An unknown command is named in it even if the parser reports a missing
/// one.
std::string usage_text(const usage::Command& app, const usage::ParseError& error, int argc,
                       const char* const* argv) {
  const std::string unknown = unknown_word(app, argc, argv);
  return unknown.empty() ? error.what() : unknown;
}

/// Replaces `resourcectl help drain` by `resourcectl drain --help`.
std::vector<const char*> without_help_command(const usage::Command& app, int argc, const char* const* argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help") return arguments;
  arguments.erase(arguments.begin() + 1);
  const std::string unknown = unknown_word(app, argc - 1, arguments.data());
  if (!unknown.empty()) throw commands::UsageError(unknown);
  arguments.push_back("--help");
  return arguments;
}

}  // namespace

int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err,
        bool terminal, const commands::Clock& now, client::Milliseconds timeout, bool interactive) {
  usage::Command app(description, "resourcectl");
  commands::Context context(in, out, err, terminal, interactive, now, timeout);
  context.words_behind_dashes = count_behind_dashes(argc, argv);
  try {
    build(app, context);
    if (usage::is_completion(argc, argv)) return complete(app, usage::words_to_complete(argc, argv), out);
    if (argc == 2 && argv[1] == usage::describe_word) {
      out << describe_program(app).dump() << std::endl;
      return static_cast<int>(ExitStatus::done);
    }
    const auto arguments = without_help_command(app, argc, argv);
    usage::parse(app, static_cast<int>(arguments.size()), arguments.data());
    out.flush();
    if (!out) throw Error(EIO, "cannot write to standard output");
    return static_cast<int>(ExitStatus::done);
  } catch (const usage::Answer& answer) {
    out << answer.what();
    return static_cast<int>(ExitStatus::done);
  } catch (const usage::ParseError& error) {
    return fail(err, usage_text(app, error, argc, argv), ExitStatus::usage);
  } catch (const commands::SilentFailure&) {
    return static_cast<int>(ExitStatus::failed);
  } catch (const commands::Interrupted& error) {
    if (std::string_view(error.what()).empty()) return static_cast<int>(ExitStatus::interrupted);
    return fail(err, error.what(), ExitStatus::interrupted);
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

int program(int argc, const char* const* argv) {
  std::ios::sync_with_stdio(false);
  const auto now = [] { return WallTime(std::chrono::system_clock::now().time_since_epoch()); };
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  const bool interactive = terminal && ::isatty(STDIN_FILENO) == 1;
  std::optional<screen::AsciiOutput> out;
  std::optional<screen::AsciiOutput> err;
  // Do not replace characters beyond ASCII in completions: a shell inserts the words unchanged.
  if (!usage::is_completion(argc, argv) &&
      !screen::abilities(screen::ColourChoice::never, terminal).unicode) {
    out.emplace(std::cout);
    err.emplace(std::cerr);
  }
  const int status = run(argc, argv, std::cin, out ? *out : std::cout, err ? *err : std::cerr, terminal, now,
                         default_timeout, interactive);
  if (status != static_cast<int>(ExitStatus::interrupted)) return status;
  std::cout.flush();
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  return status;
}

}  // namespace resourced::cli
