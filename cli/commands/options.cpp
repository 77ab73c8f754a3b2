// Shared options, see options.hpp.
#include "cli/commands/options.hpp"

#include <chrono>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/commands/named_formats.hpp"
#include "cli/commands/queue_targets.hpp"
#include "cli/commands/selection.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/format.hpp"
#include "core/error.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/whole_number.hpp"
#include "os/user_name.hpp"
#include "proto/topics/status.hpp"

namespace resourced::cli::commands {

void add_output_options(usage::Command& command, views::OutputOptions& options) {
  command.add_flag("-n,--no-header", options.no_header, "Leave out the header");
  const auto take = [&options, path = command.path()](const std::string& text) {
    options.format = find_format(path, text);
  };
  auto* format =
      command
          .add_option_function("-o,--format", take,
                               "Show fields in braces, such as '{nodelist}', or a format with a name; help "
                               "lists these, and get-config=NAME prints one")
          ->type_name("FORMAT");
  auto* json = command.add_flag("--json", options.json, "One JSON object for each row")->excludes(format);
  auto* wide = command.add_flag("-w,--wide", options.wide,
                                "Print the whole table, even if it is wider than the terminal");
  auto* width = command.add_option(
      "--width", options.width, "Fit the table to this many columns, also where the output is no terminal");
  require_count(*width);
  width->excludes(wide)->excludes(json)->excludes(format);
}

screen::Abilities abilities(const Context& context) {
  // The option's check has refused any other value.
  const auto choice = screen::parse_colour_choice(context.color).value_or(screen::ColourChoice::automatic);
  return screen::abilities(choice, context.terminal());
}

void fit_output(const Context& context, views::OutputOptions& options, std::string_view command) {
  if (!command.empty() && options.format.empty() && !options.json) options.format = default_format(command);
  const auto able = abilities(context);
  options.symbols = context.terminal() && able.unicode;
  options.colours = able.colours;
  options.ascii = !able.unicode;
  options.columns = options.width > 0 ? std::optional(options.width) : able.columns;
}

views::UserName shown_user_names(const views::Listing& columns, const views::OutputOptions& options) {
  const bool shows = views::fields_used(columns, options.format).contains("user") || options.json;
  return shows ? views::UserName(os::user_name) : nullptr;
}

void add_targets_option(usage::Command& command, NamedTargets& targets) {
  command
      .add_option(
          "-i,--include", targets.include,
          "Only these targets: ranks as an idset, or hosts, or selectors such as property:NAME, @GROUP or "
          "all,-node3")
      ->type_name("TARGETS");
  add_queue_option(command, targets.queues);
}

std::string NamedTargets::text(Context& context) const {
  if (!queues.empty() || !has_selector(include)) return listed_within_queues(context, queues, include);
  return select_targets(include, proto::topics::parse_status(context.call("resource.status"))).request;
}

std::optional<text::IdSet> NamedTargets::ranks(Context& context) const {
  const std::string named = text(context);
  if (named.empty()) return std::nullopt;
  return views::known_targets(named, proto::topics::parse_status(status_of(context, named)).inventory);
}

nlohmann::json status_of(Context& context, const std::string& targets) {
  nlohmann::json status = context.call("resource.status");
  warn_of_unknown(context, targets, status);
  return status;
}

void warn_of_unknown(const Context& context, const std::string& targets, const nlohmann::json& payload,
                     LeftHosts left) {
  if (targets.empty()) return;
  const auto status = proto::topics::parse_status(payload);
  const auto unknown =
      unknown_targets(targets, status.inventory, left == LeftHosts::known ? status.shrunk : text::Hostlist());
  if (!unknown.empty()) context.warn(unknown);
}

void add_report_options(usage::Command& command, ReportOptions& options) {
  auto* json = command.find_option("--json");
  if (json == nullptr) json = command.add_flag("--json", options.json, "Print the change as one JSON object");
  command.add_flag("--quiet", options.quiet, "Print nothing if it succeeds")->excludes(json);
}

void require_count(usage::Option& option) {
  const auto check = [](const std::string& text) -> std::string {
    if (text::whole_number<std::uint64_t>(text).value_or(0) > 0) return {};
    return fmt::format("expected a whole number from 1 on, found \"{}\"", text);
  };
  option.check(check, "POSITIVE");
}

std::string join_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

jobspec::ResourceGraph read_shape(const std::string& text, const jobspec::ShapeOptions& options) {
  try {
    return jobspec::parse_shape(text, options);
  } catch (const jobspec::ShapeError& error) {
    throw DetailedError(error.errnum(), error.what(), jobspec::point_at_column(text, error.column()));
  }
}

std::optional<client::Milliseconds> parse_timeout(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Seconds time{};
  try {
    time = parse_span(text);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  constexpr Seconds longest{1e9};
  if (time > longest) return std::nullopt;
  return std::chrono::ceil<client::Milliseconds>(time);
}

}  // namespace resourced::cli::commands
