#include "config/queues.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "config/config.hpp"
#include "config/table_reader.hpp"
#include "core/error.hpp"
#include "core/rset/property_name.hpp"
#include "core/rset/targets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/node_name.hpp"
#include "core/text/quote.hpp"

namespace resourced::config {

using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

/// Checks a virtual queue (RFC 33): it has the resources of its parent, which must be a queue with resources
/// of its own.
void check_virtual_queue(const TableReader& table, const Table& queues) {
  const std::string* parent = table.string("parent");
  if (parent == nullptr) return;
  const Node* backing = find_member(queues, *parent);
  if (backing == nullptr) table.fail("parent", fmt::format("{} is not a queue", text::quoted(*parent)));
  if (backing->table() != nullptr && find_member(*backing->table(), "parent") != nullptr)
    table.fail("parent", fmt::format("{} is a virtual queue itself", text::quoted(*parent)));
  if (table.has("requires")) table.fail("requires", "cannot be combined with parent (RFC 33)");
  const Node* policy = table.find("policy");
  if (policy != nullptr && policy->table() != nullptr &&
      find_member(*policy->table(), "scheduler") != nullptr)
    table.fail("policy", "scheduler cannot be combined with parent (RFC 33)");
}

/// Reads a queue. Returns nothing for one without `hosts`, which gives no property.
std::optional<Queue> read_queue(const TableReader& table, const std::string& name) {
  if (!table.has("hosts")) return std::nullopt;
  for (const std::string_view other : {"requires", "parent"}) {
    if (table.has(other)) table.fail("hosts", fmt::format("cannot be combined with {} (RFC 33)", other));
  }
  Queue queue{name, table.filled_string("hosts")};
  if (queue.hosts != every_host && table.hostlist("hosts").empty()) table.fail("hosts", "names no host");
  if (const std::string defect = rset::property_name_defect(queue.property()); !defect.empty())
    table.fail("hosts",
               fmt::format("no property can be named {}: {}", text::quoted(queue.property()), defect));
  return queue;
}

}  // namespace

std::vector<Queue> read_queues(const Document& document) {
  std::vector<Queue> queues;
  const Node* node = find_member(*document.root().table(), "queues");
  if (!node) return queues;
  const KeyPath path{nullptr, "queues"};
  const TableReader checked(document, *node, path);
  for (const Member& member : *node->table()) {
    const KeyPath place{&path, member.key};
    const TableReader table(document, member.node, place);
    check_virtual_queue(table, *node->table());
    if (auto queue = read_queue(table, member.key)) queues.push_back(std::move(*queue));
  }
  return queues;
}

void add_queue_properties(const Config& config, ResourceSet& resources, const Absent& absent) {
  ResourceSet result = resources;
  for (const Queue& queue : config.queues) {
    try {
      result.add_property(queue.property(),
                          queue.hosts == every_host
                              ? resources.ranks()
                              : present_ranks(Hostlist::parse(queue.hosts), resources, absent));
    } catch (const Error& error) {
      const Node& table = *find_member(*config.document->root().table(), "queues");
      const Node& hosts = *find_member(*find_member(*table.table(), queue.name)->table(), "hosts");
      const KeyPath path{nullptr, "queues"};
      const KeyPath place{&path, queue.name};
      throw Error(error.errnum(),
                  place_text(config.document->where(hosts), KeyPath{&place, "hosts"}.text(), error.what()));
    }
  }
  resources = std::move(result);
}

void check_hosts(const Hostlist& hosts) {
  if (hosts.size() > max_named_hosts)
    throw Error(EINVAL, fmt::format("names {} hosts, more than {}", hosts.size(), max_named_hosts));
  text::check_node_names(hosts);
}

IdSet present_ranks(const Hostlist& hosts, const ResourceSet& resources, const Absent& absent) {
  check_hosts(hosts);
  if (absent.any_host) return known_ranks_of_hosts(hosts, resources);
  if (absent.hosts.empty()) return ranks_of_hosts(hosts, resources);
  Hostlist present;
  hosts.for_each([&](std::string_view host) {
    if (resources.rank_of(host) || !absent.hosts.contains(std::string(host))) present.append(host);
  });
  return ranks_of_hosts(present, resources);
}

IdSet parse_present_targets(std::string_view text, const ResourceSet& resources, const Absent& absent) {
  if (const auto hosts = rset::hosts_of_targets(text)) return present_ranks(*hosts, resources, absent);
  const IdSet ranks = IdSet::parse(text);
  if (absent.any_rank) return ranks & resources.ranks();
  const IdSet rest = ranks - absent.ranks;
  if (!rest.empty() || ranks.empty()) (void)parse_targets(rest.encode(), resources);
  return ranks & resources.ranks();
}

}  // namespace resourced::config
