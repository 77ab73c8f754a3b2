// Measures every row of docs/performance.md, compares it with its bar and with the best times of this machine
// in the same run, and reports how its cost grows with the size of the cluster.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include "bench/load/crowd.hpp"
#include "bench/load/holder.hpp"
#include "bench/load/limits.hpp"
#include "bench/measure/measure.hpp"
#include "bench/measure/report.hpp"
#include "bench/rows/rows.hpp"
#include "cli/usage/parser.hpp"

namespace resourced::bench {
namespace {

struct Options {
  Effort effort;
  Format format = Format::text;
  std::string only;
  std::string directory = ".";
};

std::vector<Row> all_rows(const Bench& bench) {
  std::vector<Row> all;
  for (auto& rows : {idset_rows(), hostlist_rows(), resource_set_rows(), request_rows(), start_rows(bench),
                     acquire_rows(bench), drain_rows(bench), ledger_rows(bench), status_rows(bench),
                     journal_rows(bench), past_rows(bench), memory_rows(bench), fan_out_rows(bench),
                     agent_rows(bench), partition_rows(bench), replica_rows(bench)}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

/// Raises the limit of descriptors, as a thousand clients need more than the default of a shell.
void allow_many_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Measures a row again if it grows: other load on the machine may have slowed one size only.
std::vector<Line> measured(const Row& row, const Effort& effort, double slack) {
  constexpr int most = 3;
  std::vector<Line> lines;
  for (int i = 0; i < most; ++i) {
    lines = lines_of(row, measure(row, effort));
    const auto grows = [&](const Line& line) { return line.grows(slack); };
    if (std::none_of(lines.begin(), lines.end(), grows)) break;
    // A cached run would return the same figures again.
    if (row.most_turns == 1) break;
  }
  return lines;
}

int run(const Options& options) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const Limits limits(options.directory, self);
  const Bench bench{options.directory, self, limits};
  const std::regex wanted(options.only);
  // A quick run takes few samples, so it reports only clear growth.
  const double slack = options.effort.quick ? 2 : 1;

  print(head(options.format));
  std::vector<Line> compared;
  std::vector<std::string> faults;
  for (const Row& row : all_rows(bench)) {
    if (!std::regex_search(row.name, wanted)) continue;
    // Return freed memory of earlier rows, which would slow down the start of processes.
    ::malloc_trim(0);
    for (Line& one : measured(row, options.effort, slack)) {
      if (one.grows(slack))
        faults.push_back(fmt::format("{}, {}: growth {:.2f}", one.work, one.at, one.growth));
      if (one.slow() && !options.effort.quick) {
        faults.push_back(fmt::format("{}, {}: over the bar", one.work, one.at));
      }
      if (one.label.empty()) {
        print(line(one, options.format));
      } else {
        compared.push_back(std::move(one));
      }
    }
  }
  if (!compared.empty()) print(fmt::format("\n{}", matrix(compared, options.format)));
  for (const std::string& fault : faults) fmt::print(stderr, "suite: {}\n", fault);
  return faults.empty() ? 0 : 1;
}

int main(int argc, char** argv) {
  Options options;
  std::string echo_uri;
  std::string hold_uri;
  std::vector<std::string> consumers;
  bool is_json = false;
  bool is_markdown = false;
  cli::usage::Command app(
      "Measures every row of docs/performance.md. Fails if one is over its bar or grows too fast.");
  app.add_flag("--quick", options.effort.quick, "two minutes in all; fails only on growth, never on a time");
  app.add_option("--only", options.only, "rows whose name matches a regular expression");
  app.add_option("--directory", options.directory, "where state and sockets go; the disk that is measured");
  app.add_flag("--json", is_json, "an object a line");
  app.add_flag("--markdown", is_markdown, "for the documentation");
  app.add_option("--echo", echo_uri)->hide();
  app.add_option("--hold", hold_uri)->hide();
  app.add_option("--consumers", consumers)->expected(3)->hide();
  if (const auto status = cli::usage::parse_or_print(app, argc, argv)) return *status;
  if (is_json) options.format = Format::json;
  if (is_markdown) options.format = Format::markdown;
  allow_many_descriptors();
  if (options.effort.quick) {
    options.effort.turns = 20;
    options.effort.patience = 0.2;
  }
  if (!echo_uri.empty()) echo(echo_uri.c_str());
  if (!hold_uri.empty()) hold(hold_uri);
  if (!consumers.empty()) {
    consume(consumers[0], std::stoul(consumers[1]), std::stoull(consumers[2]));
    return 0;
  }
  return run(options);
}

}  // namespace
}  // namespace resourced::bench

int main(int argc, char** argv) {
  try {
    return resourced::bench::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "suite: {}\n", error.what());
    return 1;
  }
}
