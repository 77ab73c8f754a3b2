// resourcectl hostlist: combines, narrows and prints lists of hosts (RFC 29), without a daemon. Options and
// results are those of flux-hostlist(1).
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/commands/context.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/word_writer.hpp"
#include "cli/usage/command.hpp"
#include "core/error.hpp"
#include "core/text/host_index.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"

namespace resourced::cli::commands {

using text::HostIndex;
using text::Hostlist;
using text::IdSet;

namespace {

struct HostlistOptions {
  std::vector<std::string> sources;
  bool intersect = false;
  bool minus = false;
  bool exclusive = false;
  std::string exclude;
  bool sort = false;
  bool unique = false;
  long limit = 0;
  std::string nth;
  std::string find;
  bool count = false;
  bool expand = false;
  std::string delimiter = " ";
  bool quiet = false;
};

/// Reads a source: a text of lists that white space separates, or standard input.
Hostlist read_source(const Context& context, const std::string& source) {
  constexpr std::string_view white_space = " \t\r\n\v\f";
  const bool is_input = source == "-" || source == "stdin";
  const std::string text = is_input ? read_all(context.in()) : source;
  Hostlist hosts;
  for (std::string_view rest = text;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(white_space), rest.size()));
    if (rest.empty()) return hosts;
    const auto word = rest.substr(0, rest.find_first_of(white_space));
    hosts.append(Hostlist::parse(word));
    rest.remove_prefix(word.size());
  }
}

template <class Keep>
Hostlist filter(const Hostlist& hosts, Keep keep) {
  Hostlist kept;
  hosts.for_each([&](std::string_view host) {
    if (keep(host)) kept.append(host);
  });
  return kept;
}

enum class Kept { shared, others };
/// Returns the hosts that `other` has too, or those that it lacks.
Hostlist filter(const Hostlist& hosts, const Hostlist& other, Kept kept) {
  const HostIndex index(other);
  return filter(
      hosts, [&](std::string_view host) { return index.find(host).has_value() == (kept == Kept::shared); });
}

// Combine functions: change `hosts`, the result so far, by the next list.

void concatenate(Hostlist& hosts, const Hostlist& next) { hosts.append(next); }

void intersect(Hostlist& hosts, const Hostlist& next) {
  hosts = filter(hosts, next, Kept::shared);
  hosts.unique();
}

void keep_unshared(Hostlist& hosts, const Hostlist& next) {
  Hostlist either = filter(hosts, next, Kept::others);
  either.append(filter(next, hosts, Kept::others));
  either.unique();
  hosts = std::move(either);
}

/// Removes the first occurrences of a host, as many as `next` has.
void subtract(Hostlist& hosts, const Hostlist& next) {
  const HostIndex index(hosts);
  // How often to remove the host that has its first occurrence at a position: hosts that only `next` has take
  // no memory.
  std::unordered_map<std::size_t, std::size_t> removals;
  next.for_each([&](std::string_view host) {
    if (const auto position = index.find(host)) ++removals[*position];
  });
  if (removals.empty()) return;
  hosts = filter(hosts, [&](std::string_view host) {
    const auto removal = removals.find(index.find(host).value());
    if (removal == removals.end() || removal->second == 0) return true;
    --removal->second;
    return false;
  });
}

Hostlist combine_sources(const Context& context, const HostlistOptions& options) {
  auto* combine = concatenate;
  if (options.intersect) combine = intersect;
  if (options.minus) combine = subtract;
  if (options.exclusive) combine = keep_unshared;
  if (options.sources.empty()) {
    if (context.interactive())
      throw UsageError("hostlist: EXPR is missing, and standard input, which is read instead, is a terminal");
    return read_source(context, "-");
  }
  Hostlist hosts = read_source(context, options.sources.front());
  for (std::size_t i = 1; i < options.sources.size(); ++i)
    combine(hosts, read_source(context, options.sources[i]));
  return hosts;
}

/// Removes hosts, or, if none of them is in the list and their text is an idset, the hosts at these
/// positions.
Hostlist without(const Hostlist& hosts, const std::string& excluded) {
  const Hostlist others = Hostlist::parse(excluded);
  Hostlist rest = filter(hosts, others, Kept::others);
  if (rest.empty() || rest.size() < hosts.size()) return rest;
  try {
    const IdSet all = IdSet::range(0, static_cast<IdSet::Id>(hosts.size() - 1));
    return hosts.select(all - IdSet::parse(others.encode()));
  } catch (const Error& /*no idset*/) {
    return rest;
  }
}

/// Returns the first hosts, or for a negative limit the last ones; for 0 all.
Hostlist limited(const Hostlist& hosts, long limit) {
  const std::size_t most =
      limit < 0 ? std::size_t{0} - static_cast<std::size_t>(limit) : static_cast<std::size_t>(limit);
  if (limit == 0 || most >= hosts.size()) return hosts;
  const std::size_t first = limit < 0 ? hosts.size() - most : 0;
  return hosts.select(IdSet::range(static_cast<IdSet::Id>(first), static_cast<IdSet::Id>(first + most - 1)));
}

/// Returns the hosts at positions from 0 on, or, for a text that begins with -, from 1 on at the end.
Hostlist nth(const Hostlist& hosts, const std::string& text) {
  const bool from_end = text.starts_with('-');
  const IdSet given = IdSet::parse(std::string_view(text).substr(from_end ? 1 : 0));
  if (given.empty()) return {};
  const std::size_t least = from_end ? 1 : 0;
  if (given.first() < least || given.last() >= hosts.size() + least) {
    throw Error(ERANGE, fmt::format("--nth {}: positions {}, and the list has {} hosts", text,
                                    from_end ? "at the end count from -1" : "count from 0", hosts.size()));
  }
  if (!from_end) return hosts.select(given);
  IdSet positions;
  const auto size = static_cast<IdSet::Id>(hosts.size());
  given.for_each_range([&](IdSet::Range range) { positions.insert(size - range.last, size - range.first); });
  return hosts.select(positions);
}

/// Returns the first position of each of these hosts. Throws Error ENOENT that names those that are missing.
std::vector<std::size_t> find_all(const Hostlist& hosts, const std::string& wanted) {
  const HostIndex index(hosts);
  std::vector<std::size_t> positions;
  Hostlist missing;
  Hostlist::parse(wanted).for_each([&](std::string_view host) {
    if (const auto position = index.find(host)) {
      positions.push_back(*position);
    } else {
      missing.append(host);
    }
  });
  if (!missing.empty()) throw Error(ENOENT, fmt::format("no host {} in the list", missing.encode()));
  return positions;
}

/// Returns a delimiter with each `\n` as a line break.
std::string with_line_breaks(std::string delimiter) {
  for (std::size_t at = 0; (at = delimiter.find("\\n", at)) != std::string::npos; ++at)
    delimiter.replace(at, 2, "\n");
  return delimiter;
}

void print_hostlist(Context& context, const HostlistOptions& options) {
  Hostlist hosts = combine_sources(context, options);
  if (!options.exclude.empty()) hosts = without(hosts, options.exclude);
  if (options.sort) hosts.sort();
  if (options.unique) hosts.unique();
  hosts = limited(hosts, options.limit);
  if (!options.nth.empty()) hosts = nth(hosts, options.nth);
  std::vector<std::size_t> positions;
  if (!options.find.empty()) positions = find_all(hosts, options.find);

  if (options.quiet) {
    if (hosts.empty()) throw SilentFailure();
  } else if (!options.find.empty()) {
    WordWriter words(context.out());
    for (const std::size_t position : positions) words.add(position);
    words.end();
  } else if (options.count) {
    context.print_line(std::to_string(hosts.size()));
  } else if (hosts.empty()) {
    return;
  } else if (options.expand) {
    WordWriter words(context.out(), with_line_breaks(options.delimiter));
    hosts.for_each([&](std::string_view host) { words.add(host); });
    words.end();
  } else {
    context.print_line(hosts.encode());
  }
}

}  // namespace

void register_hostlist(usage::Command& app, Context& context) {
  auto options = std::make_shared<HostlistOptions>();
  auto* command = app.add_subcommand(
      "hostlist", "Concatenate or combine lists of hosts (RFC 29), and print the result, compressed");
  command->add_option("EXPR", options->sources,
                      "Lists of hosts, several in one EXPR separated by white space; - or stdin for those on "
                      "standard input, which is also the default. Nothing is printed for an empty list");
  auto* intersect = command->add_flag("-i,--intersect", options->intersect, "Hosts that are in all lists");
  auto* minus =
      command->add_flag("-m,--minus", options->minus,
                        "Remove the hosts of the other lists from the first list, one occurrence for "
                        "each");
  minus->excludes(intersect);
  command->add_flag("-X,--xor", options->exclusive, "Hosts that are in one of two lists, but not in both")
      ->excludes(intersect)
      ->excludes(minus);
  command
      ->add_option("-x,--exclude", options->exclude,
                   "Leave out these hosts or, if none of them is in the list, the hosts at these positions")
      ->type_name("HOSTS|IDS");
  command->add_flag("-S,--sort", options->sort, "Sort by name and number");
  command->add_flag("-u,--unique,--union", options->unique, "Sort, and remove duplicates");
  command
      ->add_option("-L,--limit", options->limit, "Only the first N hosts, or with -N the last ones; 0: all")
      ->type_name("N");
  command
      ->add_option("-n,--nth", options->nth,
                   "Only the hosts at these positions, counted from 0, or with -IDS from 1 at the end")
      ->type_name("[-]IDS");
  auto* expand = command->add_flag("-e,--expand", options->expand, "Print the hosts one by one");
  command
      ->add_option("-d,--delimiter", options->delimiter,
                   "Print this text between the hosts of --expand, \\n for a line break. Default: a blank")
      ->type_name("TEXT")
      ->may_be_empty();
  auto* count =
      command->add_flag("-c,--count", options->count, "Print the number of hosts")->excludes(expand);
  command
      ->add_option("-F,--find", options->find,
                   "Print the positions of these hosts, counted from 0; fails if one is not in the list")
      ->type_name("HOSTS")
      ->excludes(expand)
      ->excludes(count);
  command->add_flag("-q,--quiet", options->quiet, "Print nothing; fails if the list is empty");
  command->callback([options, &context] { print_hostlist(context, *options); });
}

}  // namespace resourced::cli::commands
