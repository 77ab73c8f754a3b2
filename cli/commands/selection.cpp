// Targets of a command line, see selection.hpp.
#include "cli/commands/selection.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands/host_groups.hpp"
#include "cli/views/text_width.hpp"
#include "core/error.hpp"
#include "core/rset/numeric_hosts.hpp"
#include "core/rset/targets.hpp"
#include "core/text/host_brackets.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/quote.hpp"

namespace resourced::cli::commands {

using proto::topics::Status;
using rset::ResourceSet;
using text::Hostlist;
using text::IdSet;

namespace {

constexpr std::string_view everything = "all";
constexpr std::string_view property_prefix = "property:";
constexpr std::string_view partition_prefix = "partition:";
constexpr std::string_view rank_prefix = "rank:";
constexpr std::string_view host_prefix = "host:";
constexpr char group_mark = '@';
constexpr std::string_view unknown_host = "unknown host: ";

bool is_taken_away(std::string_view part) { return part.size() > 1 && part.starts_with('-'); }

bool has_several_brackets(std::string_view part) { return part.find('[') != part.rfind('['); }

/// Whether a part names targets by what they have in common.
bool is_named_set(std::string_view part) {
  return part == everything || part.starts_with(property_prefix) || part.starts_with(partition_prefix);
}

bool is_selector(std::string_view part) {
  return is_named_set(part) || part.starts_with(rank_prefix) || part.starts_with(host_prefix) ||
         part.starts_with(group_mark) || is_taken_away(part) || has_several_brackets(part);
}

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Returns a suggestion for an unknown host; an empty text if nothing is alike.
std::string hint(std::string_view unknown, const ResourceSet& inventory) {
  if (unknown.find_first_of("*?") != std::string_view::npos)
    return ": there are no patterns of hosts, write a hostlist such as node[0-7], or all";
  std::string meant;
  inventory.nodelist().for_each([&](std::string_view host) {
    if (meant.empty() && is_same_but_for_case(host, unknown)) meant = host;
  });
  return meant.empty() ? "" : fmt::format(", did you mean {}?", meant);
}

/// Returns the error text about unknown hosts: one with a suggestion, or several as a hostlist.
std::string unknown_hosts_text(const std::vector<std::string>& unknown, const ResourceSet& inventory) {
  if (unknown.size() > rset::max_unknown_hosts)
    return fmt::format("more than {} hosts are unknown", rset::max_unknown_hosts);
  Hostlist hosts;
  std::set<std::string_view> seen;
  for (const auto& host : unknown) {
    if (seen.insert(host).second) hosts.append(host);
  }
  if (hosts.size() == 1)
    return fmt::format("unknown host: {}{}", hosts.encode(), hint(unknown.front(), inventory));
  return fmt::format("unknown hosts: {}", hosts.encode());
}

IdSet ranks_of(const Hostlist& hosts, const ResourceSet& inventory) {
  auto search = inventory.ranks_of(hosts, rset::max_unknown_hosts);
  if (!search.unknown.empty()) throw Error(EINVAL, unknown_hosts_text(search.unknown, inventory));
  return std::move(search.ranks);
}

[[noreturn]] void refuse_unknown(std::string_view kind, std::string_view name,
                                 const std::vector<std::string>& known, std::string_view none) {
  const auto rest = known.empty() ? std::string(none) : fmt::format("known are {}", fmt::join(known, ", "));
  throw Error(EINVAL, fmt::format("unknown {} {}: {}", kind, text::quoted(name), rest));
}

template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  names.reserve(map.size());
  for (const auto& entry : map) names.push_back(entry.first);
  return names;
}

IdSet select_part(std::string_view part, const Status& status) {
  const auto& inventory = status.inventory;
  if (part == everything) return inventory.ranks();
  if (part.starts_with(property_prefix)) {
    const auto name = part.substr(property_prefix.size());
    const auto found = inventory.properties().find(name);
    if (found == inventory.properties().end())
      refuse_unknown("property", name, names_of(inventory.properties()), "no target has a property");
    return found->second;
  }
  const auto name = part.substr(partition_prefix.size());
  const auto found = status.partitions.find(std::string(name));
  if (found == status.partitions.end())
    refuse_unknown("partition", name, names_of(status.partitions), "the inventory is not divided");
  return found->second.targets;
}

/// Returns the ranks of a text that is a valid idset, and cannot mean hosts as well.
IdSet plain_ranks(std::string_view text, const ResourceSet& inventory) {
  rset::refuse_numbers_of_hosts(IdSet::parse(text), inventory);
  return rset::parse_targets(text, inventory);
}

/// Targets by rank and by host, before the hosts are looked up.
struct Named {
  IdSet ranks;
  Hostlist hosts;
};

/// Adds the targets of one part of a text with selectors.
void add_part(Named& to, std::string_view part, const Status& status, Excluded excluded) {
  const auto& inventory = status.inventory;
  const bool is_host = part == everything && inventory.rank_of(part).has_value();
  if (part.starts_with(rank_prefix)) {
    to.ranks |= rset::parse_targets(IdSet::parse(part.substr(rank_prefix.size())).encode(), inventory);
  } else if (part.starts_with(host_prefix)) {
    const auto hosts = text::parse_brackets(part.substr(host_prefix.size()));
    // Taken away from the others, none would leave all of them.
    if (hosts.empty()) throw Error(EINVAL, fmt::format("{} has no hosts", part));
    to.hosts.append(hosts);
  } else if (part.starts_with(group_mark)) {
    to.hosts.append(hosts_of_group(std::string(part.substr(1))));
  } else if (has_several_brackets(part)) {
    to.hosts.append(text::parse_brackets(part));
  } else if (is_named_set(part) && !is_host) {
    auto selected = select_part(part, status);
    if (excluded == Excluded::left_out) selected -= status.exclude;
    if (selected.empty())
      throw Error(EINVAL, fmt::format("{} has no targets{}", part,
                                      excluded == Excluded::left_out ? " that are not excluded" : ""));
    to.ranks |= selected;
  } else if (const auto named = rset::hosts_of_targets(part)) {
    to.hosts.append(*named);
  } else {
    to.ranks |= plain_ranks(part, inventory);
  }
}

/// Returns the targets of a text with selectors.
IdSet select_parts(std::string_view text, const Status& status, Excluded excluded) {
  Named chosen;
  Named taken_away;
  bool chooses = false;
  for (const auto part : text::split_outside_brackets(text)) {
    if (is_taken_away(part)) {
      add_part(taken_away, part.substr(1), status, Excluded::kept);
    } else {
      add_part(chosen, part, status, excluded);
      chooses = true;
    }
  }
  if (!chooses)
    throw Error(EINVAL, fmt::format("{} only takes targets away: say from which, as in all,{}", text, text));
  IdSet ranks = chosen.ranks | ranks_of(chosen.hosts, status.inventory);
  ranks -= taken_away.ranks | ranks_of(taken_away.hosts, status.inventory);
  if (ranks.empty()) throw Error(EINVAL, fmt::format("{} leaves no targets", text));
  return ranks;
}

/// Removes the first word from a text and returns it; empty if the text has no more.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

bool names_host(std::string_view word, const ResourceSet& inventory) {
  try {
    return !rset::known_ranks_of_hosts(Hostlist::parse(word), inventory).empty();
  } catch (const Error&) {
    return false;
  }
}

bool is_idset(std::string_view word) {
  try {
    return reads_as_ranks(word);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool reads_as_ranks(std::string_view text) { return !rset::hosts_of_targets(text).has_value(); }

std::string_view without_kind(std::string_view text) {
  for (const auto prefix : {rank_prefix, host_prefix}) {
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  }
  return text;
}

bool has_selector(std::string_view text) {
  const auto parts = text::split_outside_brackets(text);
  return std::any_of(parts.begin(), parts.end(), is_selector);
}

std::string unknown_targets(std::string_view text, const ResourceSet& inventory, const Hostlist& left) {
  if (const auto hosts = rset::hosts_of_targets(text)) {
    auto search = inventory.ranks_of(*hosts, rset::max_unknown_hosts);
    std::erase_if(search.unknown, [&](const std::string& host) { return left.find(host).has_value(); });
    return search.unknown.empty() ? "" : unknown_hosts_text(search.unknown, inventory);
  }
  const IdSet unknown = IdSet::parse(text) - inventory.ranks();
  return unknown.empty() ? "" : fmt::format("unknown ranks: {}", unknown.encode());
}

Selection select_targets(std::string_view text, const Status& status, Excluded excluded) {
  const auto& inventory = status.inventory;
  IdSet ranks;
  if (has_selector(text)) {
    ranks = select_parts(text, status, excluded);
  } else if (const auto hosts = rset::hosts_of_targets(text)) {
    ranks = ranks_of(*hosts, inventory);
  } else {
    ranks = plain_ranks(text, inventory);
  }
  return select_ranks(std::move(ranks), inventory);
}

Selection select_ranks(IdSet ranks, const ResourceSet& inventory) {
  std::string request = inventory.hosts(ranks).encode();
  if (inventory.hosts_repeat() || reads_as_ranks(request)) request = ranks.encode();
  return {std::move(ranks), std::move(request)};
}

std::optional<std::string> host_in_reason(std::string_view reason, const ResourceSet& inventory) {
  const std::string_view word = take_word(reason);
  if (!names_host(word, inventory)) return std::nullopt;
  return std::string(word);
}

bool reads_as_targets(std::string_view reason, const ResourceSet& inventory) {
  std::string_view word = take_word(reason);
  if (word.empty()) return false;
  for (; !word.empty(); word = take_word(reason)) {
    if (!has_selector(word) && !is_idset(word) && !names_host(word, inventory)) return false;
  }
  return true;
}

namespace {

/// Returns hosts by the reasons for which they are drained, of which the first few are told.
std::string hosts_with_reasons(const IdSet& ranks, const Status& status) {
  std::map<std::string, IdSet> by_reason;
  for (const auto& drain : status.drains) {
    if (const IdSet some = drain.ranks & ranks; !some.empty()) by_reason[drain.reason.value_or("")] |= some;
  }
  constexpr std::size_t most_reasons = 3;
  constexpr std::size_t most_columns = 60;
  std::size_t told = 0;
  std::string text;
  IdSet left = ranks;
  for (const auto& [reason, some] : by_reason) {
    if (reason.empty() || ++told > most_reasons) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", status.inventory.hosts(some).encode(),
                        views::fit(reason, most_columns));
    left -= some;
  }
  if (left.empty()) return text;
  return fmt::format("{}{}{}", text, text.empty() ? "" : "; ", status.inventory.hosts(left).encode());
}

}  // namespace

std::string explain_refusal(const std::string& refusal, std::string_view targets, const Status& status) {
  const ResourceSet& inventory = status.inventory;
  try {
    if (refusal.starts_with(unknown_host)) {
      const auto hosts = rset::hosts_of_targets(targets);
      const auto unknown =
          hosts ? inventory.ranks_of(*hosts, rset::max_unknown_hosts).unknown : std::vector<std::string>();
      return unknown.empty() ? refusal : unknown_hosts_text(unknown, inventory);
    }
    for (const std::string_view start : {"rank ", "ranks "}) {
      if (!refusal.starts_with(start)) continue;
      const auto rest = std::string_view(refusal).substr(start.size());
      const auto end = std::min(rest.find(' '), rest.size());
      const auto ranks = IdSet::parse(rest.substr(0, end));
      if (ranks.empty() || !inventory.ranks().includes(ranks)) break;
      const std::string them = ranks.count() == 1 ? "it" : "them";
      if (rest.substr(end) == " already drained")
        return fmt::format("{} ({}): use -f to replace the reason, or -u to skip {}", refusal,
                           hosts_with_reasons(ranks, status), them);
      const bool can_skip = rest.substr(end) == " not drained" ||
                            rest.substr(end) == " not scheduled to be drained at that time";
      return fmt::format("{} ({}){}", refusal, inventory.hosts(ranks).encode(),
                         can_skip ? ": use -f to skip " + them : "");
    }
  } catch (const Error&) {
    // The text is another one that begins alike.
  }
  return refusal;
}

}  // namespace resourced::cli::commands
