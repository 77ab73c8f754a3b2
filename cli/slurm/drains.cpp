#include "cli/slurm/drains.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/slurm/conf_lines.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "core/text/host_brackets.hpp"
#include "core/text/node_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::slurm {

namespace {

/// Whether sinfo -R lists nodes in this state. A drained node that reboots, or whose registration does not
/// match its configuration, has that state instead.
bool is_out_of_service(std::string_view state) {
  constexpr std::array<std::string_view, 6> states{"down", "drain", "fail", "error", "reboot", "inval"};
  return std::ranges::any_of(states, [state](std::string_view begin) { return state.starts_with(begin); });
}

Drain read_line(std::string_view line, std::string place) {
  if (json_text::find_invalid_utf8(line)) fail_at(place, "the line is not UTF-8");
  std::array<std::string, 4> fields;
  for (std::string& field : fields) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos)
      fail_at(place, fmt::format("expected a line of the output of {}", sinfo_command));
    field = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  if (!is_out_of_service(fields[1])) {
    fail_at(place, fmt::format("nodes in state {} are in service; give the output of {}",
                               text::quoted(fields[1]), sinfo_command));
  }
  Drain drain{std::move(place), {}, fields[1], fields[2], fields[3], std::nullopt};
  // Slurm prints `none` for a node without a reason.
  if (!line.empty() && line != "none") drain.reason = line;
  try {
    drain.hosts = text::parse_brackets_list(fields[0]);
    (void)host_targets(drain.hosts);
  } catch (const Error& error) {
    fail_at(drain.place, error.what());
  }
  return drain;
}

}  // namespace

std::string host_targets(const text::Hostlist& hosts) {
  if (hosts.empty()) throw Error(EINVAL, "no node is named");
  text::check_node_names(hosts);
  std::string targets;
  const std::string list = hosts.encode();
  for (const std::string_view part : text::split_outside_brackets(list)) {
    const bool begins_with_letter = std::isalpha(static_cast<unsigned char>(part.front())) != 0;
    if (!targets.empty()) targets += ',';
    if (!begins_with_letter || part == "all") targets += "host:";
    targets += part;
  }
  return targets;
}

std::vector<Drain> read_drains(std::string_view text, std::string_view name) {
  std::vector<Drain> drains;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.empty()) drains.push_back(read_line(line, fmt::format("{}:{}", name, number)));
  }
  return drains;
}

}  // namespace resourced::cli::slurm
