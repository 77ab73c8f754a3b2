// The `resource` service: takes requests from the transports, checks them by the table of topics
// (topics.hpp), and passes each to the group that handles its topic. The groups are objects with a state of
// their own; proto/topics parses the requests, and the engine decides their effects.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
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
#include "daemon/service/answers.hpp"
#include "daemon/service/bounds.hpp"
#include "daemon/service/change_log.hpp"
#include "daemon/service/cluster_topics.hpp"
#include "daemon/service/committed.hpp"
#include "daemon/service/deferral.hpp"
#include "daemon/service/executor.hpp"
#include "daemon/service/groups.hpp"
#include "daemon/service/inventory_file.hpp"
#include "daemon/service/job_manager.hpp"
#include "daemon/service/large_requests.hpp"
#include "daemon/service/program.hpp"
#include "daemon/service/requests.hpp"
#include "daemon/service/stats.hpp"
#include "daemon/service/topics.hpp"
#include "daemon/streams/outbox.hpp"
#include "daemon/streams/position.hpp"
#include "daemon/streams/registry.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::service {

class Service final : public transport::Listener,
                      private Deferral,
                      private Executor::Listener,
                      private Requests::Owner,
                      private LargeRequests::Owner,
                      private streams::Outbox::Listener {
 public:
  struct Settings {
    /// The answer to config.get.
    std::string configuration;
    std::size_t journal_max = 100000;
    peers::Access access;
    config::Limits limits;
    /// Settings for the watch of node agents; unset where every target is always online.
    std::optional<nodes::Settings> agents = std::nullopt;
    /// Reads a directory with the topologies of all nodes, for resource.reload with `xml`, on a thread of its
    /// own. Null where such a reload is refused.
    InventoryFile::Read read_topologies = nullptr;
    /// Writes a line of the daemon's log for a change. Null where changes are logged in another way.
    ChangeLog::Write write_change = nullptr;
    /// Null for a daemon in no cluster, and for a standby.
    Leadership* leadership = nullptr;
    /// Set for a standby, whose engine takes no steps: it serves the state of its log. Else null.
    Following* following = nullptr;
    /// The state of a standby's log at the start.
    module::State state = {};
    Bounds bounds = {};
  };
  /// The `log` and the `program` must outlive this object.
  Service(log::EventLog& log, Program& program, Settings settings);

  [[nodiscard]] const engine::Engine& engine() const noexcept { return executor_.engine(); }
  [[nodiscard]] const Committed& committed() const noexcept { return committed_; }
  /// The requests that are being read beside the loop, or wait behind such a request.
  [[nodiscard]] const LargeRequests& large_requests() const noexcept { return large_; }
  /// Makes this daemon a standby, at its start.
  void stand_by(Following& following) { cluster_.stand_by(following); }
  /// Makes a standby, which has all events of the log, the leader: an engine::Start comes next. `agents` is
  /// that of Settings.
  void lead(Leadership& leadership, const std::optional<nodes::Settings>& agents);
  /// Takes an input of the start or the configuration. Its effects are sent with those of the next request.
  void step(engine::Input input, std::optional<module::Actor> by = std::nullopt);
  /// Takes an input that comes from `source` and not from a client, and sends its effects. holds() measures
  /// the work under the name of the source.
  void take(engine::Input input, std::string_view source);

  void set_configuration(std::string configuration) {
    groups_.query.set_configuration(std::move(configuration));
  }
  void set_journal_max(std::size_t most) { groups_.journal.set_most(most); }
  /// Sets the rules of access. Ends kept requests whose clients have lost the right for them, and disconnects
  /// clients without any right.
  void set_access(const peers::Access& access);
  /// Sets the rules for users of this machine, as set_access() does, and the users' groups beside the primary
  /// ones, which a later set_access() keeps.
  void set_access_rules(std::vector<config::AccessRule> rules, config::UserGroups groups);
  void set_limits(const config::Limits& limits);
  /// Sets the rules of the ledger in place of those of the start.
  void set_ledger(const module::LedgerRules& rules);
  /// Sets for how long the resources of a scheduler are kept that has lost its connection and can resume.
  void set_keep(Seconds keep) { groups_.acquire.set_keep(keep); }
  void set_agents(const nodes::Settings& settings);
  /// Begins to discover the inventory from the agents' reports. The result goes to Program::on_discovered().
  void discover(const nodes::DiscoverySettings& settings, nodes::RecordedHosts recorded);
  /// Sets the hosts for which the discovery does not wait. Has no effect without a discovery.
  void exclude_from_discovery(const text::Hostlist& hosts);
  /// Sets the R that sched-status shows as allocated; if unset, it shows the allocations of the ledger. The
  /// answer adds the properties that the targets have in the inventory.
  void set_allocated(std::optional<rset::ResourceSet> resources) {
    groups_.sched_status.set_allocated(std::move(resources));
  }
  /// Sets the job manager of the instance that is served, for requests that wait; null once it is gone.
  void set_job_manager(JobManager* jobs);
  void on_jobs(JobAnswer answer);
  /// Returns whether a request waits until jobs have freed any of these targets.
  [[nodiscard]] bool awaits_jobs(const text::IdSet& targets) { return groups_.wait.awaits_jobs(targets); }
  /// Called when the engine has an inventory, from its start or by discovery: serves the waiting acquires.
  void on_defined();
  /// Returns whether a client has any right.
  [[nodiscard]] bool welcomes(const transport::Credentials& credentials) const;
  [[nodiscard]] bool may_read(const transport::Credentials& credentials) const;
  /// Returns the users of this machine that have open connections.
  [[nodiscard]] std::set<std::uint32_t> connected_users();
  [[nodiscard]] const config::Limits& limits() const noexcept { return gate_.limits(); }
  [[nodiscard]] bool knows_key(std::string_view key) const { return gate_.access().knows_key(key); }

  void on_client(transport::Transport& transport, proto::ClientId client,
                 const transport::Credentials& credentials) override;
  void on_message(proto::ClientId client, proto::Message message) override;
  void on_gone(proto::ClientId client) override;
  void on_writable() override;
  void on_malformed(proto::ClientId client, const std::string& reason) override;
  void on_refused(const std::string& reason) override;

  /// Takes the next event of the leader on a standby. Call it before the store gets the event.
  void follow(const log::Record& record);
  /// Called when the log has committed this event and all before it; on a standby, when the store has them on
  /// disk.
  void on_committed(log::Sequence last);
  /// Called at the time of the last Program::wake_at().
  void on_time();
  /// Called when the store has answered a question.
  void on_answered();
  using Position = std::variant<streams::SchedulerPosition, streams::JournalPosition>;
  /// Continues a stream that an earlier process has served, a resource.acquire or resource.journal, at the
  /// position that it had reached. For transports whose clients outlive this process.
  void on_resumed(proto::ClientId client, const proto::Message& message, const Position& position);
  /// Returns the measurement of how long single pieces of work hold the loop. Transports add theirs.
  [[nodiscard]] transport::LoopHolds& holds() noexcept { return holds_; }

  /// Called when the store commits nothing more: clients whose responses wait for it get this error instead.
  void on_store_failed(const Error& error);
  /// Ends all kept requests with normal_end().
  void shut_down();
  /// Ends the kept requests of one transport's clients with normal_end().
  void end_requests(const transport::Transport& transport);
  /// Ends the streams of schedulers with this error, and releases their resources. Spares the clients of the
  /// transport `except` if it is set.
  void end_schedulers(const Error& error, const transport::Transport* except = nullptr);
  /// Returns whether a client has no pending request, and no response waits for it.
  [[nodiscard]] bool is_idle(proto::ClientId client);
  /// Returns the number of responses that are queued for clients.
  [[nodiscard]] std::size_t unsent() const { return clients_.unsent(); }

 private:
  /// Limits of log lines about clients, by kind.
  struct Lines {
    peers::RateLimit malformed;
    peers::RateLimit refused;
    peers::RateLimit cut_off;
  };

  // Calls from the topics and the parts that they share.
  void later(Seconds pause, std::function<void()> work) override;
  void post(std::string_view name, std::function<void()> work) override;
  void on_applied(Committed::Event event) override { committed_.add(std::move(event)); }
  void on_logged(log::LoggedEvent event, text::IdSet ranks) override {
    groups_.journal.append(std::move(event), std::move(ranks));
  }
  void on_changed() override;
  void on_agent(const nodes::AgentNews& news) override { groups_.agents.tell(news); }
  void on_discovered(const rset::ResourceSet& inventory) override { program_.on_discovered(inventory); }
  void on_replaced() override { groups_.wait.on_replaced(); }
  void on_update(log::Sequence after, const streams::Update& update) override {
    subscribers_.update(after, update.holder, update.delta);
  }
  void on_read(const streams::Read& read) override;
  void on_unreachable(proto::ClientId client) override { requests_.forget(client); }
  void release(proto::RequestKey key, const streams::Stream& stream, End end) override;
  void on_turn(proto::ClientId client, const proto::Message& request, Content* content) override;

  [[nodiscard]] Groups make_groups(log::EventLog& log, Settings& settings);
  /// Ends the kept requests of the clients of one transport, or of all clients if it is null.
  void end_requests(const transport::Transport* transport);

  /// Returns the topic of a request that may be served, or refuses the request and returns null.
  [[nodiscard]] const Topic* admit(proto::ClientId client, const peers::Principal& sender,
                                   const proto::Message& request);
  /// Serves a request of a known client, now or once it is read or the log has the event that it waits for,
  /// or refuses it. A stream with a position continues there. `content` is that of a large request that is
  /// read.
  void dispatch(proto::ClientId client, const proto::Message& request, const Position* position = nullptr,
                Content* content = nullptr);
  /// Calls the handler of a request.
  void serve(const Call& call, const Position* position);
  /// Returns the event that has to be committed before this client gets an answer of the topic; nothing if
  /// the answer can leave at once.
  [[nodiscard]] std::optional<log::Sequence> awaited_by(const Topic& topic, proto::ClientId client);
  /// Applies the events that the log has committed, as of `now`, to the state that reads show.
  void follow_commits(SteadyTime now);
  /// Tells the program about a client if it is a user of this machine.
  void tell_user(const transport::Credentials& credentials) const;
  /// Refuses a request beyond a limit.
  void turn_away(proto::ClientId client, const proto::Message& request, const Error& error);
  /// Disconnects a client.
  void cut_off(proto::ClientId client, std::string_view why);
  void flush();
  /// Sends what can be sent, and sets the timer. Called after everything that may have changed the state.
  void settle();
  /// Arranges the call of on_time() for the time when the engine has something due.
  void schedule();
  /// Logs from time to time what the discovery waits for.
  void tell_discovery_later();

  log::EventLog& log_;
  Program& program_;
  /// The time of the pending Program::wake_at().
  std::optional<SteadyTime> awake_at_;
  Stats stats_;
  transport::LoopHolds holds_;
  Gate gate_;
  ChangeLog changes_;
  peers::Clients clients_;
  streams::Registry registry_;
  streams::Outbox outbox_;
  Executor executor_;
  Committed committed_;
  /// The last event of the start.
  log::Sequence started_ = 0;
  Requests requests_;
  streams::Subscribers subscribers_;
  ClusterTopics cluster_;
  Answers answers_;
  Lines lines_;
  // Declared last: the threads of groups_ and large_ use the other members.
  Groups groups_;
  LargeRequests large_;
};

}  // namespace resourced::daemon::service
