// Finds the candidates for values of resourcectl, see completion.hpp.
#include "cli/completion.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <exception>
#include <iterator>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/time.h>
#include <unistd.h>

#include "cli/commands/named_formats.hpp"
#include "cli/help.hpp"
#include "cli/name_groups.hpp"
#include "cli/usage/command.hpp"
#include "cli/usage/complete.hpp"
#include "cli/views/views.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/utf8.hpp"
#include "proto/event_json.hpp"
#include "proto/topics/status.hpp"
#include "proto/topics/usage.hpp"

namespace resourced::cli {

namespace {

using proto::topics::Status;
using Names = std::vector<std::string>;

/// The kind of the values of an option or argument.
enum class Kind {
  other,
  files,
  hosts,
  absent_hosts,
  targets,
  properties,
  partitions,
  queues,
  reasons,
  events,
  status_states,
  sched_states,
  fields,
  report_groups,
};

struct KindOf {
  /// The subcommand; empty for all.
  std::string_view command;
  /// The long name of an option, or the name of an argument.
  std::string_view option;
  Kind kind;
};

constexpr auto kinds = std::to_array<KindOf>({
    {"", "--include", Kind::hosts},
    {"", "TARGETS", Kind::targets},
    {"", "NODE", Kind::targets},
    {"forget", "HOSTS", Kind::absent_hosts},
    {"", "REASON", Kind::reasons},
    {"rolling", "--reason", Kind::reasons},
    {"", "--partition", Kind::partitions},
    {"", "--queue", Kind::queues},
    {"property add", "NAME", Kind::properties},
    {"property remove", "NAME", Kind::properties},
    {"feasibility", "--constraint", Kind::properties},
    {"eventlog", "--wait", Kind::events},
    {"status", "--states", Kind::status_states},
    {"", "--states", Kind::sched_states},
    {"eventlog", "--format", Kind::other},
    {"", "--format", Kind::fields},
    {"report", "--by", Kind::report_groups},
    {"", "--key", Kind::files},
    {"", "--cursor", Kind::files},
    {"", "--jobspec", Kind::files},
    {"", "--R", Kind::files},
    {"rolling", "--state", Kind::files},
    {"", "--server-key", Kind::files},
    {"", "FILE", Kind::files},
    {"", "PATH", Kind::files},
    {"", "COMMAND", Kind::files},
});

Kind kind_of(const usage::Place& place) {
  if (place.value_of == nullptr) return Kind::other;
  const usage::Option& option = *place.value_of;
  const std::string command = place.command();
  for (const KindOf& row : kinds) {
    if (!row.command.empty() && row.command != command) continue;
    if (option.has_name(row.option)) return row.kind;
  }
  return usage::is_file(option) ? Kind::files : Kind::other;
}

bool asks_daemon(Kind kind) {
  return kind == Kind::hosts || kind == Kind::absent_hosts || kind == Kind::targets ||
         kind == Kind::properties || kind == Kind::partitions || kind == Kind::queues ||
         kind == Kind::reasons;
}

/// Returns the names of events that `eventlog` prints by default: events of the ledger need --allocations.
Names event_names() {
  Names names = views::event_names();
  std::erase_if(names, [](const std::string& name) { return proto::is_ledger_name(name); });
  return names;
}

Names report_groups() {
  using proto::topics::ReportBy;
  Names names;
  for (const auto by : {ReportBy::host, ReportBy::reason, ReportBy::property, ReportBy::month})
    names.emplace_back(proto::topics::report_by_name(by));
  return names;
}

/// The parts of a word of several values: `a,b`.
struct ListWord {
  /// The values before the last, with their commas.
  std::string before;
  std::string last;

  explicit ListWord(const std::string& word) {
    std::size_t start = 0;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '[') ++depth;
      if (word[i] == ']' && depth > 0) --depth;
      if (word[i] == ',' && depth == 0) start = i + 1;
    }
    before = word.substr(0, start);
    last = word.substr(start);
  }
};

Names with_prefix(Names names, std::string_view prefix) {
  std::erase_if(names, [prefix](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

Names prepend(std::string_view before, Names names) {
  for (std::string& name : names) name.insert(0, before);
  return names;
}

Names states(const std::string& word, Names known, Names further) {
  const ListWord list(word);
  known.insert(known.end(), further.begin(), further.end());
  return prepend(list.before, with_prefix(std::move(known), list.last));
}

/// Returns candidates for a word that is a format with fields in braces.
Names fields(const std::string& word, const std::string& command) {
  const std::size_t open = word.rfind('{');
  const bool is_inside = open != std::string::npos && word.find('}', open) == std::string::npos;
  const std::string before = is_inside ? word.substr(0, open + 1) : word + '{';
  Names names = with_prefix(fields_of(command), is_inside ? word.substr(open + 1) : "");
  for (std::string& name : names) name = fmt::format("{}{}}}", before, name);
  if (open == std::string::npos) {
    for (std::string& name : with_prefix(commands::format_names(command), word))
      names.push_back(std::move(name));
  }
  return names;
}

Names properties_of(const Status& status) {
  Names names;
  for (const auto& [name, ranks] : status.inventory.properties()) names.push_back(name);
  return names;
}

Names partitions_of(const Status& status) {
  Names names;
  for (const auto& [name, partition] : status.partitions) names.push_back(name);
  return names;
}

Names queues_of(const nlohmann::json& config) {
  Names names;
  const auto queues = config.value("queues", nlohmann::json::object());
  for (const auto& queue : queues.items()) names.push_back(queue.key());
  return names;
}

Names reasons_of(const Status& status) {
  std::set<std::string> reasons;
  for (const auto* drains : {&status.drains, &status.scheduled}) {
    for (const auto& drain : *drains) {
      if (drain.reason) reasons.insert(*drain.reason);
    }
  }
  return {reasons.begin(), reasons.end()};
}

void append(Names& to, Names from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

Names selectors(const std::string& word, std::string_view selector, const Names& names) {
  if (names.empty()) return {};
  const std::string_view prefix = word;
  if (prefix.empty()) return {std::string(selector)};
  if (!selector.starts_with(prefix) && !prefix.starts_with(selector)) return {};
  const auto begun = prefix.size() > selector.size() ? prefix.substr(selector.size()) : "";
  return prepend(selector, name_candidates(names, begun));
}

/// Returns those of these hosts that are candidates for the last part of a word.
Names hosts_for(const ListWord& list, const text::Hostlist& all) {
  Names hosts;
  all.for_each([&](std::string_view host) {
    if (host.starts_with(list.last)) hosts.emplace_back(host);
  });
  return host_candidates(std::move(hosts), list.last);
}

/// Returns candidates for targets; `has_selectors` means that the command changes targets, and also takes
/// `all`, `property:NAME` and `partition:NAME`.
Names targets(const std::string& word, const Status& status, bool has_selectors) {
  const ListWord list(word);
  // No candidates inside brackets, where the user writes a hostlist.
  if (list.last.find('[') != std::string::npos) return {};
  Names found = hosts_for(list, status.inventory.nodelist());
  if (has_selectors) {
    append(found, with_prefix({"all"}, list.last));
    append(found, selectors(list.last, "property:", properties_of(status)));
    append(found, selectors(list.last, "partition:", partitions_of(status)));
  }
  return prepend(list.before, std::move(found));
}

extern "C" void end_silently(int /*signal*/) { _exit(0); }

/// Ends the process silently when the time is over, even during a look-up, a connection attempt, or the
/// destruction of a connection.
class Deadline {
 public:
  explicit Deadline(std::chrono::microseconds time) {
    struct sigaction action = {};
    action.sa_handler = end_silently;
    sigaction(SIGALRM, &action, &former_);
    const itimerval timer = {.it_interval = {0, 0}, .it_value = {0, static_cast<suseconds_t>(time.count())}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ~Deadline() {
    const itimerval off = {};
    setitimer(ITIMER_REAL, &off, nullptr);
    sigaction(SIGALRM, &former_, nullptr);
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  struct sigaction former_ = {};
};

nlohmann::json ask_daemon(const usage::Place& place, const std::string& topic) {
  client::ConnectionOptions options;
  options.key_file = place.value("key");
  options.connect_timeout = options.call_timeout = options.failover_timeout = completion_patience;
  options.linger = client::Milliseconds(0);
  client::Connection connection(place.value("uri"), options);
  return connection.call(topic);
}

Names names_from_daemon(Kind kind, const usage::Place& place) {
  if (kind == Kind::queues) {
    const ListWord list(place.word);
    return prepend(list.before, with_prefix(queues_of(ask_daemon(place, "config.get")), list.last));
  }
  const Status status = proto::topics::parse_status(ask_daemon(place, "resource.status"));
  if (kind == Kind::absent_hosts) {
    const ListWord list(place.word);
    return prepend(list.before, hosts_for(list, status.absent.hosts()));
  }
  if (kind == Kind::hosts || kind == Kind::targets) return targets(place.word, status, kind == Kind::targets);
  if (kind == Kind::properties) return name_candidates(properties_of(status), place.word);
  if (kind == Kind::partitions) return name_candidates(partitions_of(status), place.word);
  return name_candidates(reasons_of(status), place.word);
}

Names from_daemon(Kind kind, const usage::Place& place) {
  Names names = names_from_daemon(kind, place);
  // Refuse words that look like options: a drain reason of one user must not choose options of another.
  const bool is_value = place.is_behind_dashes || !place.before.empty();
  if (!is_value) std::erase_if(names, [](const std::string& name) { return name.starts_with('-'); });
  return names;
}

Names of_program(Kind kind, const usage::Place& place) {
  switch (kind) {
    case Kind::events:
      return with_prefix(event_names(), place.word);
    case Kind::report_groups:
      return with_prefix(report_groups(), place.word);
    case Kind::status_states:
      return states(place.word, views::parse_status_states("all"), {"all", "online", "allocated", "shrunk"});
    case Kind::sched_states:
      return states(place.word, views::parse_sched_states("all"), {"all"});
    case Kind::fields:
      return fields(place.word, place.command());
    default:
      return {};
  }
}

/// Prints candidates, except those that are not one line of printable text: they would be several candidates,
/// or control the terminal.
void print(std::ostream& out, std::string_view before, const Names& names) {
  for (const std::string& name : names) {
    if (json_text::printable_line(name) == name) out << before << name << '\n';
  }
  out.flush();
}

}  // namespace

int complete(const usage::Command& app, std::span<const std::string> words, std::ostream& out) {
  const usage::Place place = usage::find_place(app, words);
  print(out, "", usage::fixed_candidates(place));
  const Kind kind = kind_of(place);
  if (kind == Kind::files) return usage::complete_files;
  if (!asks_daemon(kind)) {
    print(out, place.before, of_program(kind, place));
    return 0;
  }
  try {
    Names names;
    {
      const Deadline deadline(completion_patience);
      names = from_daemon(kind, place);
    }
    print(out, place.before, names);
  } catch (const std::exception&) {
    // Ignore errors: without an answer there are no candidates, and an error would be printed into the user's
    // command line.
  }
  return 0;
}

}  // namespace resourced::cli
