// The `resource` service: takes requests from the transports, finds what is asked for and who may ask for it
// in the topic table, and answers through the outbox. What a request means is in proto/topics, what follows
// from it in the engine.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/module/parent.hpp"
#include "core/module/presence.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/agents.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/feasibility_checks.hpp"
#include "daemon/service/inventory_file.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/streams/journal.hpp"
#include "daemon/streams/journal_pace.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/subscribers.hpp"
#include "daemon/streams/waitups.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/request_table.hpp"

namespace resourced::daemon::service {

class Service final : public transport::Listener {
 public:
  struct Settings {
    /// The answer to config.get.
    std::string configuration;
    std::size_t journal_max = 100000;
    peers::Access access;
    config::Limits limits;
    /// Seconds that never go back, for rates.
    std::function<double()> uptime;
    /// How node agents are watched; nothing where every target is online always.
    std::optional<Agents::Settings> agents;
    /// Asks for on_time() at that uptime. A later call takes the place of an earlier one.
    std::function<void(double)> wake_at;
    /// Reads the configuration again; throws Error if it is refused.
    std::function<void()> reload;
    /// Puts an R that was read from a file in the place of the inventory; throws Error if it is refused. With
    /// `force` it may have more ranks than the instance.
    std::function<void(ResourceSet resources, const std::string& path, bool force)> load;
    /// Has the loop do something after so many seconds, unless it has ended by then. With 0 from any thread.
    std::function<void(double, std::function<void()>)> later;
  };
  Service(store::EventLog& log, std::function<double()> now, Settings settings);

  [[nodiscard]] const engine::Engine& engine() const noexcept { return executor_.engine(); }
  /// Takes an input that comes from the start, the configuration or the enclosing instance.
  void step(const engine::Input& input) { executor_.step(input); }

  void set_configuration(std::string configuration);
  void set_journal_max(std::size_t most) { journal_.set_most(most); }
  /// Who has lost a right loses what it holds by it, and who has none any more its connection.
  void set_access(peers::Access access);
  void set_limits(const config::Limits& limits);
  void set_agents(const Agents::Settings& settings);
  /// The inventory is what node agents report. `define` takes it to the engine.
  void discover(const DiscoverySettings& settings, RecordedHosts recorded,
                std::function<void(const ResourceSet&)> define);
  /// Hosts for which the discovery does not wait; nothing where there is none.
  void exclude_from_discovery(const Hostlist& hosts);
  /// The drains that belong to a reload after which `exclude` is excluded: targets that return, although
  /// their agents found something else than the inventory says.
  [[nodiscard]] std::vector<ReloadCommand::Drain> verify_included(const IdSet& exclude) const;
  /// The engine has an inventory, from its start or by discovery: what waited for it goes on.
  void on_defined();
  /// The instance is inside another, whose word counts from now on: once the engine has an inventory, before
  /// on_defined().
  void enclose();
  /// What the enclosing instance says.
  void on_parent(ParentChange change);
  /// Whether a client may do anything at all.
  [[nodiscard]] bool welcomes(const transport::Credentials& credentials) const;
  [[nodiscard]] bool knows_key(std::string_view key) const { return access_.knows_key(key); }

  void on_client(transport::Transport& transport, proto::ClientId client,
                 const transport::Credentials& credentials) override;
  void on_message(proto::ClientId client, proto::Message message) override;
  void on_gone(proto::ClientId client) override;
  void on_writable() override;
  void on_malformed(const std::string& reason) override;
  void on_refused(const std::string& reason) override;

  /// The store has this event and all before it on disk.
  void on_committed(store::Sequence last);
  /// It is as late as was asked for.
  void on_time();
  /// The store has answered a question.
  void on_answered();
  /// How long single pieces of work keep the loop; transports add theirs.
  [[nodiscard]] transport::LoopHolds& holds() noexcept { return holds_; }

  /// The store keeps nothing more: who waits for it is told so, and nothing else will be.
  void on_store_failed(const Error& error);
  /// Ends what is still open, in words of RFC 28.
  void shut_down();
  /// The responses that wait until their clients read.
  [[nodiscard]] std::size_t unsent() const { return clients_.unsent(); }

 private:
  struct Topic {
    std::string_view name;
    void (Service::*handle)(proto::ClientId, const proto::Message&);
    peers::Right right;
    bool streaming = false;
  };
  static const Topic* find_topic(std::string_view name);
  /// The topics whose requests stay until they are ended.
  static constexpr std::array<std::string_view, 6> streams{"resource.acquire",  "resource.journal",
                                                           "resource.agent",    "resource.monitor-waitup",
                                                           "feasibility.check", "resource.reload"};

  /// Whether a request keeps to the limits; if it does not, its sender has been told so or cut off.
  bool admit(proto::ClientId client, const proto::Message& request);
  void turn_away(proto::ClientId client, const proto::Message& request, const Error& error);
  void cut_off(proto::ClientId client, std::string_view why);
  void check_right(proto::ClientId client, const proto::Message& request, peers::Right right);
  void dispatch(proto::ClientId client, const proto::Message& request);
  void cancel(proto::ClientId client, const proto::Message& request);
  void acquire(proto::ClientId client, const proto::Message& request);
  void hold(proto::RequestKey key, const std::optional<std::string>& partition);
  void acquire_mute(proto::ClientId client, const proto::Message& request);
  void disconnect(proto::ClientId client, const proto::Message& request);
  void agent(proto::ClientId client, const proto::Message& request);
  void agent_beat(proto::ClientId client, const proto::Message& request);
  void drain(proto::ClientId client, const proto::Message& request);
  void undrain(proto::ClientId client, const proto::Message& request);
  void property(proto::ClientId client, const proto::Message& request);
  void expiration(proto::ClientId client, const proto::Message& request);
  void shrink(proto::ClientId client, const proto::Message& request);
  void status(proto::ClientId client, const proto::Message& request);
  void sched_status(proto::ClientId client, const proto::Message& request);
  void inventory(proto::ClientId client, const proto::Message& request);
  void journal(proto::ClientId client, const proto::Message& request);
  void reload(proto::ClientId client, const proto::Message& request);
  void monitor_waitup(proto::ClientId client, const proto::Message& request);
  void monitor_force_down(proto::ClientId client, const proto::Message& request);
  void stats_clear(proto::ClientId client, const proto::Message& request);
  void stats(proto::ClientId client, const proto::Message& request);
  void feasibility(proto::ClientId client, const proto::Message& request);
  void ping(proto::ClientId client, const proto::Message& request);
  void config_get(proto::ClientId client, const proto::Message& request);
  void attr_get(proto::ClientId client, const proto::Message& request);

  /// Throws Error if no other R can be loaded now.
  void check_loadable() const;
  void on_inventory_file(proto::RequestKey key, const std::string& path, bool force,
                         std::variant<ResourceSet, Error> result);
  void answer_feasibility(proto::RequestKey key, const std::optional<Error>& refusal);
  /// Answers the requests that wait for as many targets as are online now, and refuses those that wait for
  /// more than there are.
  void answer_waitups();
  [[nodiscard]] Stats::Gauges gauges() const;
  void execute(proto::ClientId client, const proto::Message& request, const Command& command);
  void respond(proto::ClientId client, const proto::Message& request, proto::Payload payload = nullptr);
  void refuse(proto::ClientId client, const proto::Message& request, const Error& error);
  void push(proto::ClientId client, proto::Message response);
  void deliver(streams::Outgoing outgoing);
  void flush();
  /// Serves the journal's consumers, now or as soon as it is their turn.
  void flush_journal();
  void serve_journal();
  /// A journal ended because the log on disk is damaged.
  void on_damaged_log(const Error& error);
  /// A consumer that had too much under way may take more.
  void on_journal_room();
  void forget(proto::ClientId client);
  /// Lets go of what the request of a stream holds.
  void release(proto::RequestKey request, Agents::End end = Agents::End::lost);
  /// Ends a stream with an error.
  void end_stream(proto::RequestKey request, const Error& error);
  Agents& agents();
  void end_agents(const IdSet& ranks);
  /// Sees to it that on_time() is called when agents have something due.
  void schedule();

  peers::Clients clients_;
  proto::RequestTable requests_;
  streams::Subscribers subscribers_;
  streams::Outbox outbox_;
  Executor executor_;
  // The journal's consumers may want it from other threads until the journal is gone.
  std::function<void(double, std::function<void()>)> later_;
  streams::Journal journal_;
  streams::JournalPace journal_pace_;
  /// Its next slice has been asked for.
  bool journal_is_due_ = false;
  Answers answers_;
  proto::Payload configuration_;
  std::optional<Presence> presence_;
  /// When a client last set the expiration of this instance.
  double own_expiration_set_ = 0;
  std::optional<Agents> agents_;
  /// Acquires that wait for the inventory, and the partitions that they ask for.
  std::map<proto::RequestKey, std::optional<std::string>> early_acquires_;
  streams::Waitups waitups_;
  std::function<void(double)> wake_at_;
  std::optional<double> awake_at_;
  peers::Access access_;
  config::Limits limits_;
  std::function<double()> uptime_;
  std::function<void()> reload_;
  std::function<void(ResourceSet, const std::string&, bool)> load_;
  /// The request that waits for a file that is being read.
  std::optional<proto::RequestKey> loading_;
  store::EventLog& log_;
  Stats stats_;
  transport::LoopHolds holds_;
  peers::RateLimit malformed_;
  peers::RateLimit refusals_;
  peers::RateLimit denials_;
  peers::RateLimit cuts_;
  peers::RateLimit damages_;
  peers::RateLimit disagreements_;
  /// The last, as its thread ends first.
  FeasibilityChecks feasibility_;
  InventoryFile inventory_file_;
};

}  // namespace resourced::daemon::service
