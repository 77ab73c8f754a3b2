// The `resource` service: takes requests from the transports, checks them by the table of topics
// (topics.hpp), and passes each to the group that handles its topic. The groups are objects with a state of
// their own; proto/topics parses the requests, and the engine decides their effects.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/nodes/nodes.hpp"
#include "core/time.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/peers/access.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/peers/limits.hpp"
#include "daemon/service/acquire_topics.hpp"
#include "daemon/service/agent_topics.hpp"
#include "daemon/service/allocation_topics.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/change_log.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/feasibility_topics.hpp"
#include "daemon/service/job_manager.hpp"
#include "daemon/service/journal_topics.hpp"
#include "daemon/service/metrics_topics.hpp"
#include "daemon/service/monitor_topics.hpp"
#include "daemon/service/past_topics.hpp"
#include "daemon/service/query_topics.hpp"
#include "daemon/service/reload_topics.hpp"
#include "daemon/service/replica.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/sched_status.hpp"
#include "daemon/service/stalled_answers.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"
#include "daemon/service/wait_topics.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::service {

class Service final : public transport::Listener {
 public:
  struct Settings {
    /// The answer to config.get.
    std::string configuration;
    std::size_t journal_max = 100000;
    peers::Access access;
    config::Limits limits;
    /// The steady time.
    std::function<SteadyTime()> uptime;
    /// How node agents are watched; nothing where every target is online always.
    std::optional<nodes::Settings> agents;
    /// Asks for on_time() at that time. A later call takes the place of an earlier one.
    std::function<void(SteadyTime)> wake_at;
    ReloadTopics::Reload reload;
    ReloadTopics::Load load;
    JournalTopics::Later later;
    /// Reads a directory with the topologies of all nodes, for resource.reload with `xml`, on a thread of its
    /// own. Null where this is refused.
    InventoryFile::Read read_topologies = nullptr;
    /// Writes a line of the daemon's log for a change. Null where the changes are logged otherwise.
    ChangeLog::Write write_change = nullptr;
    /// A user of this machine connects, who may have no role. Null where nobody wants to know.
    std::function<void(std::uint32_t uid)> on_user = nullptr;
    /// Nothing for a daemon on its own.
    std::optional<Leadership> leadership = std::nullopt;
    /// For a standby, whose engine takes no steps: it serves what its log tells.
    std::optional<Following> following = std::nullopt;
  };
  Service(log::EventLog& log, std::function<WallTime()> now, Settings settings);

  [[nodiscard]] const engine::Engine& engine() const noexcept { return executor_.engine(); }
  /// Takes an input of the start or the configuration. Its effects are sent with those of the next request.
  void step(const engine::Input& input, std::optional<module::Actor> by = std::nullopt) {
    executor_.step(input, std::move(by));
  }
  /// Takes an input that comes from `source` and not from a client, and sends its effects. holds() measures
  /// the work under the name of the source.
  void take(const engine::Input& input, std::string_view source);

  void set_configuration(std::string configuration) { query_.set_configuration(std::move(configuration)); }
  void set_journal_max(std::size_t most) { journal_.set_most(most); }
  /// Ends kept requests whose clients have lost the right for them, and disconnects clients without any
  /// right.
  void set_access(const peers::Access& access);
  /// The same with other rules for users of this machine, and their groups beside the primary ones, which a
  /// later set_access() keeps.
  void set_access_rules(std::vector<config::AccessRule> rules, config::UserGroups groups);
  void set_limits(const config::Limits& limits);
  void set_agents(const nodes::Settings& settings);
  /// Begins to discover the inventory from the agents' reports. `define` passes the result to the engine.
  void discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded,
                std::function<void(const rset::ResourceSet&)> define);
  /// Sets the hosts for which the discovery does not wait. Without a discovery it has no effect.
  void exclude_from_discovery(const text::Hostlist& hosts);
  /// Sets the R that sched-status shows as allocated; nothing is shown as an empty R. The answer adds the
  /// properties that the targets have in the inventory.
  void set_allocated(std::optional<rset::ResourceSet> resources) {
    sched_status_.set_allocated(std::move(resources));
  }
  /// The job manager of the instance that is served, for requests that wait; null once it is gone.
  void set_job_manager(JobManager* jobs);
  void on_jobs(JobAnswer answer);
  /// Whether a request waits until jobs have freed any of these targets.
  [[nodiscard]] bool awaits_jobs(const text::IdSet& targets) { return wait_.awaits_jobs(targets); }
  /// The engine has an inventory, from its start or by discovery: serves the acquires that wait for it.
  void on_defined();
  /// Whether a client has any right.
  [[nodiscard]] bool welcomes(const transport::Credentials& credentials) const;
  [[nodiscard]] bool may_read(const transport::Credentials& credentials) const;
  [[nodiscard]] const config::Limits& limits() const noexcept { return gate_.limits(); }
  [[nodiscard]] bool knows_key(std::string_view key) const { return gate_.access().knows_key(key); }

  void on_client(transport::Transport& transport, proto::ClientId client,
                 const transport::Credentials& credentials) override;
  void on_message(proto::ClientId client, proto::Message message) override;
  void on_gone(proto::ClientId client) override;
  void on_writable() override;
  void on_malformed(const std::string& reason) override;
  void on_refused(const std::string& reason) override;

  /// For a standby: the next event of the leader. To be called before the store gets it.
  void follow(const log::Record& record);
  /// The store has this event and all before it on disk.
  void on_committed(log::Sequence last);
  /// The time of the last Settings::wake_at() has come.
  void on_time();
  /// The store has answered a question.
  void on_answered();
  using Position = std::variant<streams::SchedulerPosition, streams::JournalPosition>;
  /// Continues a stream that an earlier process has served, a resource.acquire or resource.journal, at the
  /// position that it had reached. For transports whose clients outlive this process.
  void on_resumed(proto::ClientId client, const proto::Message& message, const Position& position);
  /// Measures how long single pieces of work occupy the loop; transports add theirs.
  [[nodiscard]] transport::LoopHolds& holds() noexcept { return holds_; }

  /// The store commits nothing more: clients whose responses wait for it get this error instead.
  void on_store_failed(const Error& error);
  /// Ends all kept requests with normal_end().
  void shut_down();
  /// The same for the clients of one transport.
  void end_requests(const transport::Transport& transport);
  /// Ends the streams of schedulers with this error, and releases their resources: of all, or of all but the
  /// clients of one transport.
  void end_schedulers(const Error& error, const transport::Transport* except = nullptr);
  /// Whether a client has no pending request, and no response waits for it.
  [[nodiscard]] bool is_idle(proto::ClientId client);
  /// The number of responses that are queued for clients.
  [[nodiscard]] std::size_t unsent() const { return clients_.unsent(); }

 private:
  friend class Topics;

  /// Ends the kept requests of the clients that `is_meant` is true for.
  void end_requests(const std::function<bool(proto::ClientId)>& is_meant);

  /// Calls the handler of a request, or refuses the request. A stream with a position continues there.
  void dispatch(proto::ClientId client, const peers::Principal& sender, const proto::Message& request,
                const Position* position = nullptr);
  void cancel(const Call& call) { requests_.cancel(call); }
  void disconnect(const Call& call) { requests_.forget(call.client); }

  /// Tells Settings::on_user of a client that is a user of this machine.
  void tell_user(const transport::Credentials& credentials) const;
  /// Refuses a request that is beyond a limit.
  void turn_away(proto::ClientId client, const proto::Message& request, const Error& error);
  /// Disconnects a client.
  void cut_off(proto::ClientId client, std::string_view why);
  /// Releases what an ended request holds.
  void release(proto::RequestKey key, const streams::Stream& stream, End end);
  void flush();
  /// Called after everything that may have changed the state: sends what can be sent, and sets the timer.
  void settle();
  /// Has on_time() called when the engine has something due.
  void schedule();
  /// Keeps the holders of resources for the next leader.
  void keep_holders();
  /// Logs from time to time what the discovery waits for.
  void tell_discovery_later();
  /// Answers what waits for a log that commits nothing, and need not.
  void look_for_stall();
  /// Returns a function by which another thread runs work on the loop, measured in holds() by this name.
  [[nodiscard]] std::function<void(std::function<void()>)> poster(std::string_view name);
  [[nodiscard]] Stats::Gauges gauges() const;
  /// The targets that a request can name.
  [[nodiscard]] const rset::ResourceSet& targets() const {
    return replica_ ? replica_->inventory() : executor_.module().addressable();
  }
  /// The last event that this daemon knows.
  [[nodiscard]] log::Sequence last_event() const { return replica_ ? replica_->last() : engine().applied(); }
  /// The last event that may be told in an answer that does not wait for the log.
  [[nodiscard]] log::Sequence told_event() const {
    return cluster_.leads() ? outbox_.committed() : last_event();
  }

  std::function<SteadyTime()> uptime_;
  JournalTopics::Later later_;
  std::function<void(std::uint32_t)> on_user_;
  std::function<void(SteadyTime)> wake_at_;
  /// The time of the pending Settings::wake_at().
  std::optional<SteadyTime> awake_at_;
  log::EventLog& log_;
  Stats stats_;
  transport::LoopHolds holds_;
  Gate gate_;
  ChangeLog changes_;
  peers::Clients clients_;
  streams::Registry registry_;
  streams::Outbox outbox_;
  Executor executor_;
  StalledAnswers stalled_;
  /// look_for_stall() will be called in a moment.
  bool looks_for_stall_ = false;
  bool is_shut_down_ = false;
  /// What keep_holders() has last passed on.
  std::optional<std::vector<module::PartitionHolder>> kept_holders_;
  Requests requests_;
  streams::Subscribers subscribers_;
  ClusterTopics cluster_;
  /// Present in a standby.
  std::optional<Replica> replica_;
  Answers answers_;
  peers::RateLimit malformed_;
  peers::RateLimit refusals_;
  peers::RateLimit cuts_;

  AcquireTopics acquire_;
  AllocationTopics allocations_;
  JournalTopics journal_;
  AgentTopics agents_;
  MonitorTopics monitor_;
  WaitTopics wait_;
  QueryTopics query_;
  PastTopics past_;
  MetricsTopics metrics_;
  // Declared last, so that their threads end before the other members are destroyed.
  SchedStatus sched_status_;
  FeasibilityTopics feasibility_;
  ReloadTopics reload_;
};

}  // namespace resourced::daemon::service
