// resourcectl report: how long nodes were up, allocated, drained and offline, and how often they failed.
#include <memory>
#include <ostream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/context.hpp"
#include "cli/commands/options.hpp"
#include "cli/commands/time_argument.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/usage.hpp"
#include "cli/views/views.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::cli::commands {

namespace {

struct ReportArguments {
  views::OutputOptions output;
  std::string since;
  std::string until;
  std::string by;
  std::size_t limit = proto::topics::ReportRequest::most_groups;
  bool csv = false;
};

void report(Context& context, const ReportArguments& arguments) {
  proto::topics::ReportRequest request;
  request.limit = arguments.limit;
  if (!arguments.by.empty()) {
    const auto by = proto::topics::parse_report_by(arguments.by);
    if (!by)
      throw UsageError(
          fmt::format("--by: expected host, reason, property or month, found \"{}\"", arguments.by));
    request.by = *by;
  }
  request.since = parse_time(arguments.since, context.now(), Unsigned::back);
  if (!arguments.until.empty()) request.until = parse_time(arguments.until, context.now(), Unsigned::back);
  // Report an unknown field without a request to the daemon.
  (void)views::render(views::report_columns(request.by), arguments.output);
  // Factor of the time-out: the daemon reads the log of the whole time, and serves others first.
  constexpr int patience = 20;
  const auto payload = context.connection().call(
      "resource.report", proto::topics::encode_report_request(request), context.timeout() * patience);
  const proto::topics::Report found = proto::topics::parse_report(payload);
  constexpr Seconds noticeable{1};
  if (found.since - request.since > noticeable || request.since - found.since > noticeable)
    context.warn(fmt::format("counted from {} on", views::format_time(found.since)));
  if (request.until && *request.until < context.now() && found.until - *request.until > noticeable)
    context.warn(fmt::format("counted until {}", views::format_time(found.until)));
  if (found.missing > 0)
    context.warn(
        fmt::format("nothing is known of {} of that time", views::format_length(Seconds(found.missing))));
  if (found.left_out > 0) context.warn(fmt::format("{} more are left out", found.left_out));
  if (arguments.csv) {
    context.out() << views::report_csv(found, request.by, !arguments.output.no_header);
  } else {
    context.out() << views::render(views::report_view(found, request.by), arguments.output);
  }
}

}  // namespace

void register_report(usage::Command& app, Context& context) {
  auto arguments = std::make_shared<ReportArguments>();
  auto* command = app.add_subcommand(
      "report", "Show how long nodes were up, allocated, drained and offline, their outages and the reasons");
  command
      ->add_option(
          "--since", arguments->since,
          "From this time on: 2026-11-22T18:30, a duration such as 30d for that long ago, or seconds "
          "since the epoch")
      ->type_name("TIME")
      ->required();
  command->add_option("--until", arguments->until, "Until this time, in the forms of --since; default: now")
      ->type_name("TIME");
  command
      ->add_option("--by", arguments->by, "A row for each host, reason, property or month; default: one row")
      ->type_name("GROUP");
  auto* limit = command->add_option("--limit", arguments->limit, "At most this many rows");
  require_count(*limit);
  add_output_options(*command, arguments->output);
  command->add_flag("--csv", arguments->csv, "Comma-separated values, in seconds")
      ->excludes(command->get_option("--json"))
      ->excludes(command->get_option("--format"));
  command->callback([arguments, &context] {
    fit_output(context, arguments->output);
    report(context, *arguments);
  });
}

}  // namespace resourced::cli::commands
