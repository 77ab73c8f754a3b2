#include "cli/slurm/inventory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/rset/property_name.hpp"
#include "core/text/host_brackets.hpp"
#include "core/text/node_name.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::cli::slurm {

using text::Hostlist;

namespace {

/// The most sockets, cores or gpus of a node: Slurm counts sockets and cores in 16 bits.
constexpr unsigned long max_count = 65535;

/// The longest expression of hosts, in bytes.
constexpr std::size_t max_expression = std::size_t{64} << 10;

/// Settings by their keys; the last one of a key is in force.
using Settings = std::map<std::string, Setting>;

void merge(Settings& settings, const ConfLine& line) {
  for (const Setting& setting : line.settings)
    settings.insert_or_assign(setting.key == "feature" ? "features" : setting.key, setting);
}

std::string value_of(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second.value;
}

std::optional<unsigned long> read_number(std::string_view text) {
  const auto number = text::whole_number<unsigned long>(text);
  return number && *number <= max_count ? number : std::nullopt;
}

/// Reads a count of gpus as slurmctld does: digits, and K, KiB or KB behind them for 1024 or 1000, or the
/// same with M, G, T and P. Returns nothing for another text and for a count beyond max_count.
std::optional<unsigned long> read_gpu_count(std::string_view text) {
  constexpr std::string_view powers = "kmgtp";
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto count = read_number(text.substr(0, digits));
  const std::string unit = lower_case(text.substr(digits));
  if (!count || unit.empty()) return count;
  const std::size_t power = powers.find(unit.front());
  const std::string_view rest = std::string_view(unit).substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return std::nullopt;
  for (std::size_t i = 0; i <= power; ++i) {
    *count *= rest == "b" ? 1000 : 1024;
    if (*count > max_count) return std::nullopt;
  }
  return count;
}

/// Splits a list at the commas outside of brackets, and leaves out empty parts.
std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> parts;
  for (const std::string_view part : text::split_outside_brackets(list))
    if (!part.empty()) parts.emplace_back(part);
  return parts;
}

Hostlist read_hosts(const std::string& place, std::string_view text) {
  try {
    Hostlist hosts;
    for (const std::string& part : split_list(text)) {
      if (part.size() > max_expression)
        throw Error(EINVAL, fmt::format("{} is longer than {} bytes", text::quoted(part), max_expression));
      hosts.append(text::parse_brackets(part));
      if (hosts.size() > max_nodes) throw Error(ERANGE, "");
    }
    if (hosts.empty()) throw Error(EINVAL, "no node is named");
    text::check_node_names(hosts);
    return hosts;
  } catch (const Error& error) {
    const bool is_many = error.errnum() == ERANGE;
    fail_at(place, is_many ? fmt::format("more than {} nodes", max_nodes) : error.what());
  }
}

/// Returns the cores of each node as slurmctld finds them: it believes sockets more than CPUs.
unsigned long cores_of(const std::string& place, const Settings& settings) {
  const auto count = [&](const char* key) -> std::optional<unsigned long> {
    const auto setting = settings.find(key);
    if (setting == settings.end()) return std::nullopt;
    const auto number = read_number(setting->second.value);
    if (!number) {
      fail_at(place, fmt::format("{}: expected a number of at most {}, found {}", setting->second.name,
                                 max_count, text::quoted(setting->second.value)));
    }
    return std::max(*number, 1UL);
  };
  const unsigned long in_socket = count("corespersocket").value_or(1);
  const unsigned long threads = count("threadspercore").value_or(1);
  const unsigned long boards = count("boards").value_or(1);
  auto cpus = count("cpus");
  if (!cpus) cpus = count("procs");
  const unsigned long in_cpus = in_socket * threads;
  unsigned long sockets = cpus && *cpus % in_cpus == 0 ? *cpus / in_cpus : boards;
  sockets = count("sockets").value_or(sockets);
  if (const auto on_board = count("socketsperboard")) sockets = *on_board * boards;
  const unsigned long cores = sockets * in_socket;
  if (cores > max_count) fail_at(place, fmt::format("{} cores are more than {}", cores, max_count));
  return cores;
}

class NodeReader {
 public:
  void take(const ConfLine& line) {
    static constexpr std::array<std::string_view, 4> tables{"nodename", "partitionname", "nodeset",
                                                            "downnodes"};
    const Setting& first = line.settings.front();
    for (std::size_t i = 1; i < line.settings.size(); ++i) {
      if (std::ranges::find(tables, line.settings[i].key) != tables.end())
        fail_at(line.place, fmt::format("{} must be the first key of its line", line.settings[i].name));
    }
    if (first.key == "nodename") return take_nodes(line);
    if (first.key == "partitionname") return take_partition(line);
    if (first.key == "downnodes") return take_down_nodes(line);
    if (first.key == "nodeset") {
      merge(node_sets_[first.value], line);
      return;
    }
    for (const Setting& setting : line.settings) leave_out(line.place, setting.name);
  }

  Inventory finish() {
    if (inventory_.nodes.empty()) throw Error(ENOENT, "no NodeName with a node in these files");
    for (const auto& [place, settings] : partitions_) finish_partition(place, settings);
    return std::move(inventory_);
  }

 private:
  void leave_out(const std::string& place, const std::string& what) {
    if (left_out_.insert(what).second) inventory_.left_out.push_back(fmt::format("{}: {}", place, what));
  }

  void leave_out_others(const ConfLine& line, std::initializer_list<std::string_view> known) {
    for (const Setting& setting : line.settings) {
      if (std::ranges::find(known, setting.key) == known.end())
        leave_out(line.place, fmt::format("{} {}", line.settings.front().name, setting.name));
    }
  }

  void take_nodes(const ConfLine& line) {
    leave_out_others(line,
                     {"nodename", "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket",
                      "threadspercore", "feature", "features", "gres", "state", "reason"});
    const std::string& name = line.settings.front().value;
    if (lower_case(name) == "default") return merge(node_defaults_, line);
    Settings settings = node_defaults_;
    merge(settings, line);
    Nodes nodes;
    nodes.hosts = read_hosts(line.place, name);
    if (hosts_.size() + nodes.hosts.size() > max_nodes)
      fail_at(line.place, fmt::format("more than {} nodes in all", max_nodes));
    nodes.hosts.for_each([&](std::string_view host) {
      if (!hosts_.emplace(host).second)
        fail_at(line.place, fmt::format("node {} is named before", text::quoted(host)));
    });
    nodes.cores = cores_of(line.place, settings);
    const std::string threads = value_of(settings, "threadspercore");
    if (!threads.empty() && threads != "1")
      leave_out(line.place, "ThreadsPerCore: cores are counted, not threads");
    take_features(line.place, value_of(settings, "features"), nodes);
    take_gres(line.place, value_of(settings, "gres"), nodes);
    take_state(line.place, settings, std::move(nodes));
  }

  void take_features(const std::string& place, const std::string& value, Nodes& nodes) {
    for (const std::string& feature : split_list(value)) {
      if (const std::string defect = rset::property_name_defect(feature); !defect.empty()) {
        leave_out(place, fmt::format("feature {}: {}", text::quoted(feature), defect));
      } else if (std::ranges::find(nodes.features, feature) == nodes.features.end()) {
        nodes.features.push_back(feature);
      }
    }
  }

  /// Counts the gpus of `gpu`, `gpu:2`, `gpu:TYPE` and `gpu:TYPE:2`, each also with `(S:SOCKETS)` at its end.
  void take_gres(const std::string& place, const std::string& value, Nodes& nodes) {
    for (const std::string& gres : split_list(value)) {
      const std::size_t colon = std::min(gres.find(':'), gres.size());
      if (gres.substr(0, colon) != "gpu" || gres.find(":no_consume") != std::string::npos) {
        leave_out(place, fmt::format("Gres {}", text::quoted(gres)));
        continue;
      }
      const std::string_view text = std::string_view(gres).substr(0, gres.find('('));
      const std::size_t last = text.rfind(':');
      const std::string_view end = last == std::string_view::npos ? "" : text.substr(last + 1);
      // No type begins with a digit: slurmctld refuses it as a wrong count.
      const bool has_number = !end.empty() && end.front() >= '0' && end.front() <= '9';
      const auto number = has_number ? read_gpu_count(end) : std::optional(1UL);
      if (!number || nodes.gpus + *number > max_count)
        fail_at(place, fmt::format("Gres {}: expected at most {} gpus, as in gpu:2 or gpu:TYPE:2",
                                   text::quoted(gres), max_count));
      nodes.gpus += *number;
      if (text.size() < gres.size())
        leave_out(place, fmt::format("Gres {}: the sockets of the gpus", text::quoted(gres)));
      if (colon < (has_number ? last : text.size()))
        leave_out(place, fmt::format("Gres {}: the type of the gpus", text::quoted(gres)));
    }
  }

  void take_state(const std::string& place, const Settings& settings, Nodes nodes) {
    const std::string text = value_of(settings, "state");
    const std::string state = lower_case(text);
    if (state == "future") {
      leave_out(place,
                fmt::format("State=FUTURE of {}, which are not in the inventory", nodes.hosts.encode()));
      nodes.hosts.for_each([&](std::string_view host) { future_hosts_.emplace(host); });
      return;
    }
    if (state == "down" || state == "drain" || state == "fail" || state == "failing") {
      take_out_of_service(nodes.hosts, value_of(settings, "reason"));
    } else if (!state.empty() && state != "unknown" && state != "idle") {
      leave_out(place, fmt::format("State={}", text::quoted(text)));
    }
    for (const std::string& feature : split_list(value_of(settings, "features")))
      hosts_of_features_[feature].append(nodes.hosts);
    inventory_.nodes.push_back(std::move(nodes));
  }

  void take_out_of_service(const Hostlist& hosts, std::string reason) {
    if (reason.empty()) reason = "out of service in slurm.conf";
    inventory_.out_of_service.push_back({hosts, std::move(reason)});
  }

  void take_down_nodes(const ConfLine& line) {
    leave_out_others(line, {"downnodes", "state", "reason"});
    Settings settings;
    merge(settings, line);
    if (lower_case(value_of(settings, "downnodes")) == "default")
      return leave_out(line.place, "DownNodes=DEFAULT");
    take_out_of_service(read_hosts(line.place, value_of(settings, "downnodes")),
                        value_of(settings, "reason"));
  }

  void take_partition(const ConfLine& line) {
    leave_out_others(line, {"partitionname", "nodes", "default", "state"});
    const std::string& name = line.settings.front().value;
    if (lower_case(name) == "default") return merge(partition_defaults_, line);
    Settings settings = partition_defaults_;
    merge(settings, line);
    for (const auto& [place, other] : partitions_) {
      if (value_of(other, "partitionname") == name)
        fail_at(line.place, fmt::format("partition {} is in {}, too", text::quoted(name), place));
    }
    partitions_.emplace_back(line.place, std::move(settings));
  }

  /// Adds the nodes of a part of `Nodes`: a set of nodes, or hosts. Those with State=FUTURE are left out.
  void add_hosts(const std::string& place, const std::string& text, Hostlist& to, bool may_be_set = true) {
    const auto set = node_sets_.find(text);
    if (may_be_set && set != node_sets_.end()) {
      const auto hosts = hosts_of_features_.find(value_of(set->second, "features"));
      if (hosts != hosts_of_features_.end()) to.append(hosts->second);
      for (const std::string& part : split_list(value_of(set->second, "nodes")))
        add_hosts(place, part, to, false);
      return;
    }
    read_hosts(place, text).for_each([&](std::string_view host) {
      if (!hosts_.contains(std::string(host)))
        fail_at(place, fmt::format("no NodeName has the node {}", text::quoted(host)));
      if (!future_hosts_.contains(std::string(host))) to.append(host);
    });
  }

  void finish_partition(const std::string& place, const Settings& settings) {
    Partition partition;
    partition.name = value_of(settings, "partitionname");
    if (partition.name.empty()) fail_at(place, "a partition without a name");
    if (const std::string defect = rset::property_name_defect('+' + partition.name); !defect.empty())
      return leave_out(place, fmt::format("partition {}: {}", text::quoted(partition.name), defect));
    for (const std::string& part : split_list(value_of(settings, "nodes"))) {
      if (lower_case(part) == "all") {
        partition.has_all = true;
      } else {
        add_hosts(place, part, partition.hosts);
      }
    }
    if (partition.has_all) partition.hosts = {};
    if (!partition.has_all && partition.hosts.empty())
      return leave_out(place, fmt::format("partition {}, which has no nodes", text::quoted(partition.name)));
    partition.hosts.unique();
    const std::string state = value_of(settings, "state");
    if (!state.empty() && lower_case(state) != "up")
      leave_out(place, fmt::format("PartitionName State={}", text::quoted(state)));
    const std::string is_default = lower_case(value_of(settings, "default"));
    if (is_default == "yes" || is_default == "true" || is_default == "1")
      inventory_.default_partition = partition.name;
    inventory_.partitions.push_back(std::move(partition));
  }

  Inventory inventory_;
  Settings node_defaults_;
  Settings partition_defaults_;
  std::unordered_set<std::string> hosts_;
  std::unordered_set<std::string> future_hosts_;
  std::map<std::string, Settings> node_sets_;
  /// The nodes of the inventory by their features, also those that cannot be properties.
  std::map<std::string, Hostlist> hosts_of_features_;
  /// Partitions with their places; their nodes may be named by lines behind them.
  std::vector<std::pair<std::string, Settings>> partitions_;
  std::set<std::string> left_out_;
};

}  // namespace

Inventory read_inventory(const std::vector<ConfLine>& lines) {
  NodeReader reader;
  for (const ConfLine& line : lines) reader.take(line);
  return reader.finish();
}

}  // namespace resourced::cli::slurm
