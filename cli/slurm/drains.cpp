#include "cli/slurm/drains.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "cli/slurm/conf_lines.hpp"
#include "core/error.hpp"
#include "core/text/node_name.hpp"

namespace resourced::cli::slurm {

namespace {

Drain read_line(std::string_view line, std::string place) {
  std::array<std::string, 4> fields;
  for (std::string& field : fields) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos)
      fail_at(place, fmt::format("expected a line of the output of {}", sinfo_command));
    field = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  Drain drain{std::move(place), {}, fields[1], fields[2], fields[3], std::nullopt};
  // Slurm prints `none` for a node without a reason.
  if (!line.empty() && line != "none") drain.reason = line;
  try {
    drain.hosts = text::Hostlist::parse(fields[0]);
    if (drain.hosts.empty()) throw Error(EINVAL, "no node in the first field");
    text::check_node_names(drain.hosts);
  } catch (const Error& error) {
    fail_at(drain.place, error.what());
  }
  return drain;
}

}  // namespace

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
