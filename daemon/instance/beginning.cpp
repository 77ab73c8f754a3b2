#include "daemon/instance/beginning.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/targets.hpp"
#include "core/text/node_name.hpp"
#include "daemon/instance/kept_actors.hpp"
#include "daemon/instance/kvs_log.hpp"

namespace resourced::daemon::instance {

namespace flux = ::resourced::flux;

using flux::link::Severity;
using flux::module::Channel;
using module::DefineMethod;
using nlohmann::json;
using proto::Message;
using rset::ResourceSet;
using text::IdSet;

namespace {

class Starter {
 public:
  Starter(Channel& channel, const flux::module::Welcome& welcome, WallTime now)
      : channel_(channel), welcome_(welcome), now_(now) {}

  Beginning read() {
    Beginning beginning;
    beginning.arguments = flux::module::read_arguments(welcome_);
    beginning.settings = flux::module::read_settings(configuration(), welcome_.rank, welcome_.hosts);
    beginning.is_recovery =
        flux::module::read_attribute(channel_, welcome_, "broker.recovery-mode").has_value();
    beginning.node = flux::module::probe_node(welcome_.rank, beginning.settings.norestrict);
    flux::module::forget_topology();
    if (!channel_.is_first()) await_commits();
    find_resources(beginning);
    if (beginning.found) text::check_node_names(beginning.found->resources.nodelist());
    const std::size_t targets = std::max<std::size_t>(
        welcome_.size, beginning.found ? beginning.found->resources.ranks().count() : 0);
    read_state(beginning, targets);
    find_online(beginning, targets);
    return beginning;
  }

 private:
  /// Returns the configuration, without an R that an earlier process has read from it.
  json configuration() const {
    json all = welcome_.configuration;
    const auto table = all.is_object() ? all.find("resource") : all.end();
    if (channel_.is_first() || table == all.end() || !table->is_object()) return all;
    for (const char* key : {"config", "path", "scheduling"}) table->erase(key);
    return all;
  }

  // Waits for commits of an earlier process: the KVS answers lookups while it still commits changes of a
  // process that has died since. It has committed them when it answers a later commit, even an empty one.
  void await_commits() { (void)channel_.call("kvs.commit", kvs_commit({}, false), Channel::nearest()); }

  /// Returns the value of a key; nothing if there is none.
  std::optional<std::string> lookup(const std::string& key) {
    try {
      return kvs_value(key,
                       proto::parse_object(channel_.call("kvs.lookup", kvs_lookup(key), Channel::nearest())));
    } catch (const Error& error) {
      if (error.errnum() == ENOENT) return std::nullopt;
      throw;
    }
  }

  void find_resources(Beginning& beginning) {
    if (!channel_.is_first()) return find_resources_again(beginning);
    if (beginning.settings.resources) {
      beginning.found = {*beginning.settings.resources, DefineMethod::configuration, false};
    } else if (auto recorded = recorded_resources()) {
      beginning.found = {*std::move(recorded), DefineMethod::kvs, true};
    } else {
      ask_enclosing(beginning);
    }
  }

  // Finds the resources again after an earlier process: its resources, with all later changes, are in the
  // KVS. The source of R may have changed since, for the next time that the module is loaded.
  void find_resources_again(Beginning& beginning) {
    auto recorded = recorded_resources();
    if (!recorded) return ask_enclosing(beginning);
    const auto method = last_definition(lookup(eventlog_key).value_or(""));
    beginning.found = {*std::move(recorded), method.value_or(DefineMethod::kvs), true};
    if (beginning.found->method != DefineMethod::job_info) return;
    Found was = *std::move(beginning.found);
    ask_enclosing(beginning);
    if (beginning.found) was.resources.set_expiration(beginning.found->resources.expiration());
    beginning.found = std::move(was);
  }

  /// Returns the R of the KVS; nothing if there is none.
  std::optional<ResourceSet> recorded_resources() {
    const auto text = lookup(resources_key);
    if (!text) return std::nullopt;
    try {
      return ResourceSet::parse(*text);
    } catch (const Error& error) {
      throw Error(EINVAL, fmt::format("error parsing R: {}", error.what()));
    }
  }

  void ask_enclosing(Beginning& beginning) {
    const auto job = flux::module::read_attribute(channel_, welcome_, "jobid");
    const auto uri = flux::module::read_attribute(channel_, welcome_, "parent-uri");
    if (!job || !uri) return;
    beginning.enclosing = std::make_unique<Enclosing>(*uri, *job);
    const ResourceSet allocated = beginning.enclosing->read(!beginning.settings.no_update_watch);
    auto resources = in_ranks_of(allocated, welcome_.hosts);
    if (!resources) {
      channel_.log(Severity::debug,
                   fmt::format("cannot map {} ranks of R to {} brokers: these report what they have",
                               allocated.ranks().count(), welcome_.size));
    } else if (beginning.settings.rediscover) {
      beginning.expiration = allocated.expiration();
    } else {
      beginning.found = {*std::move(resources), DefineMethod::job_info, false};
    }
  }

  void read_state(Beginning& beginning, std::size_t targets) {
    std::optional<WallTime> horizon;
    const Seconds history = beginning.settings.history;
    if (!beginning.is_recovery && !beginning.arguments.notruncate && history < forever)
      horizon = now_ - history;
    const Brokers brokers(welcome_.hosts, targets);
    const std::string checkpoint = lookup(checkpoint_key).value_or("");
    const auto events = lookup(eventlog_key);
    beginning.kept = read_kept_state(events.value_or(""), checkpoint, brokers, horizon);
    if (events) read_actors(beginning.kept, brokers);
    if (const auto text = lookup(properties_key)) {
      read_properties(*text, beginning);
      // The R in the KVS already has these changes.
      if (beginning.found && beginning.found->is_recorded)
        undo_properties(beginning, beginning.found->resources);
    }
  }

  void read_actors(KeptState& kept, const Brokers& brokers) {
    const auto text = lookup(actors_key);
    if (!text) return;
    try {
      KeptActors actors = read_kept_actors(*text, kept.drains, brokers);
      kept.drains = std::move(actors.drains);
      kept.rewritten_actors = std::move(actors.rewritten);
    } catch (const Error& error) {
      channel_.log(Severity::warning, fmt::format("ignored {} in the KVS: {}", actors_key, error.what()));
      kept.rewritten_actors.emplace();
    }
  }

  void read_properties(const std::string& text, Beginning& beginning) {
    try {
      beginning.properties = changes_from_json(read_object(text));
    } catch (const std::exception& error) {
      channel_.log(Severity::warning, fmt::format("ignored {} in the KVS: {}", properties_key, error.what()));
      beginning.properties = {};
    }
  }

  static void undo_properties(const Beginning& beginning, ResourceSet& resources) {
    for (const auto& [name, ranks] : beginning.properties.added)
      resources.remove_property(name, ranks & resources.ranks());
    for (const auto& [name, ranks] : beginning.properties.removed)
      resources.add_property(name, ranks & resources.ranks());
  }

  void find_online(Beginning& beginning, std::size_t targets) {
    if (beginning.arguments.force_up) {
      beginning.forced_online = IdSet::range(0, static_cast<IdSet::Id>(targets - 1));
    } else if (!beginning.is_recovery) {
      beginning.online_stream = channel_.ask(
          "groups.get", {{"name", beginning.settings.systemd ? "sdmon.online" : "broker.online"}},
          Channel::nearest(), proto::flag::streaming);
      beginning.online = members(channel_.await(*beginning.online_stream));
      beginning.torpid_stream =
          channel_.ask("groups.get", {{"name", "broker.torpid"}}, Channel::nearest(), proto::flag::streaming);
      // Wait for the torpid ranks, so that no scheduler gets one as up when this program is restarted.
      beginning.torpid = members(channel_.await(*beginning.torpid_stream));
    }
  }

  Channel& channel_;
  const flux::module::Welcome& welcome_;
  WallTime now_;
};

}  // namespace

IdSet members(const Message& answer) {
  return IdSet::parse(proto::parse_object(answer, most_values).at("members").get<std::string>());
}

IdSet excluded_ranks(const Beginning& beginning, std::size_t size) {
  const std::string& text = beginning.settings.exclude;
  if (text.empty()) return {};
  const auto fail = [&](std::string_view why) {
    throw Error(EINVAL, fmt::format("error decoding exclude set {}: {}", text, why));
  };
  IdSet ranks;
  if (const auto hosts = rset::hosts_of_targets(text)) {
    if (!beginning.found) fail("R is unavailable for mapping hostnames to ranks");
    text::Hostlist unknown;
    const ResourceSet& resources = beginning.found->resources;
    hosts->for_each([&](std::string_view host) {
      if (!resources.rank_of(host)) unknown.append(host);
    });
    if (!unknown.empty()) fail(fmt::format("invalid targets: invalid hosts: {}", unknown.encode()));
    ranks = rset::ranks_of_hosts(*hosts, resources);
  } else {
    ranks = IdSet::parse(text);
  }
  if (!ranks.empty() && ranks.last() >= size)
    throw Error(EINVAL, fmt::format("exclude set {} is out of range", text));
  return ranks;
}

Beginning read_beginning(Channel& channel, const flux::module::Welcome& welcome, WallTime now) {
  return Starter(channel, welcome, now).read();
}

}  // namespace resourced::daemon::instance
