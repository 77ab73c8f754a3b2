// The daemon without sockets, files, threads and clocks: service, streams, outbox, engine and log run in one
// process, with clients that send requests, stall, die and connect again, a configuration that changes, a
// clock that is set, and a machine that crashes. One seed decides all of it. Every message to a client is
// compared with a second implementation of the events (reference.hpp):
//
//  - no message tells of an event before it is on disk, and an answered change is present after a crash;
//  - the view of a scheduler is the state after some event on disk, and never goes back to an earlier one; no
//    target is held by two schedulers (RFC 28, and the rules of docs/compliance.md);
//  - a scheduler with extensions knows all allocations and scheduled drains that concern it, the expired
//    allocations, and why a target is down, as far as it has asked for that, and each of its responses is
//    true up to its number; schedulers that wait are served in their order;
//  - the acquisition of a scheduler that sends nothing for its lease ends soon after, and no earlier: time in
//    which the daemon stands still does not count;
//  - a connection waits for nothing that it has or waits for already, and no user has more requests that wait
//    than the bound; the ledger does not grow beyond its bound, and no change that fits is refused;
//  - the requests of a scheduler are served in their order, also those that a thread reads, and each has an
//    answer;
//  - allocations that have expired are freed if the site wants that, and never by a clock that may be wrong;
//  - behind the health gate no target comes online before a check of its host has passed, and only drains of
//    the daemon and of agents end without an operator;
//  - rolling work has never more nodes away than its budget, runs its command only on drained nodes without
//    allocations, never ends a drain of others, and returns a node only after it was online and its check has
//    passed;
//  - the journal is the log, without gaps and in the order of time; its fold is the state that status shows;
//  - the events on disk are complete: a complete export of them, also one that begins with a snapshot, gives
//    the state of the daemon, member by member.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "checks.hpp"
#include "daemon/service/service.hpp"
#include "inventory.hpp"
#include "peers.hpp"
#include "reference.hpp"
#include "roller.hpp"
#include "sim_log.hpp"
#include "temp_dir.hpp"

namespace resourced::sim {

class Simulation final : public daemon::service::Program {
 public:
  static constexpr std::uint32_t most_targets = 9;

  explicit Simulation(std::uint32_t seed);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  Simulation(Simulation&&) = delete;
  Simulation& operator=(Simulation&&) = delete;

  /// Throws Violation.
  void run(std::uint64_t steps);

  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t crashes = 0;
    std::uint64_t responses = 0;
    std::uint64_t deltas = 0;
    std::uint64_t ledger = 0;
    std::uint64_t pages = 0;
    std::uint64_t large = 0;
    std::uint64_t bounded = 0;
    std::uint64_t leases = 0;
    std::uint64_t expired = 0;
    std::uint64_t rolled = 0;
    std::uint64_t returned = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  /// An operator's request that waits for its response.
  struct Asked {
    std::string what;
    bool is_status = false;
    /// The last event when the request had been handled.
    std::uint64_t after = 0;
    /// The expected errnum of the response, if it is determined.
    std::optional<std::uint32_t> errnum = std::nullopt;
  };
  /// A definition without a start: the excluded ranks, and the hosts by rank if another R was loaded.
  struct Reload {
    Reference::Ranks exclude;
    std::optional<std::vector<std::string>> hosts = std::nullopt;
  };
  /// Another R that was loaded and replaced a configuration with these hosts.
  struct Loaded {
    /// The event that defines it.
    std::uint64_t sequence = 0;
    std::vector<std::string> hosts;
    std::vector<std::string> replaced;
    /// The definition by another configuration, which ends it once it is on disk.
    std::optional<std::uint64_t> ended = std::nullopt;
  };

  // The program of the service.
  [[nodiscard]] WallTime wall_now() const override { return wall_time(now_); }
  [[nodiscard]] SteadyTime steady_now() const override { return uptime_; }
  /// Queues work for the loop, from the loop itself or from the thread that reads an R.
  void run_later(Seconds pause, std::function<void()> work) override;
  void wake_at(SteadyTime when) override { wake_ = when; }
  void reload(const By& /*by*/) override {}

  // Actions.
  void step();
  void crash();
  void stop();
  void fail_store();
  void start();
  void operate();
  void reconfigure();
  void load();
  void ask_status();
  void acquire();
  /// A scheduler asks again for what it has, or waits for.
  void acquire_again();
  /// Whether the partition of a scheduler that waits had no targets since: its wait may be over.
  [[nodiscard]] bool may_have_ended(const Scheduler& scheduler);
  void end_scheduler();
  void evict();
  /// Lets the daemon free what it has kept for long enough.
  void end_kept();
  /// Whether a scheduler has a partition, or will have it before any that comes now.
  [[nodiscard]] bool is_taken(const std::string& partition) const;
  /// The present targets of a partition, or those in none, with excluded ones.
  [[nodiscard]] Reference::Ranks part_of(const std::string& partition, const Reference& state) const;
  /// Whether the partition of a scheduler had no targets at some time since its request.
  [[nodiscard]] bool was_empty(const Scheduler& scheduler, std::uint64_t last);
  void follow();
  void unfollow();
  void say_hello();
  void while_rivals_return_nothing(const std::function<void()>& work);
  void beat();
  void report_health();
  void end_agent();
  void stall();
  /// A scheduler with a lease sends nothing from now on, or comes to life again.
  void hang();
  /// The daemon stands still, and its schedulers with it.
  void sleep();
  void sync();
  void notify();
  void set_clock();
  /// The clock may be wrong from now on.
  void distrust_clock();
  void pass();
  /// Lets time pass on both clocks, with all that comes due meanwhile.
  void advance(Seconds span);
  /// When the next timer of the loop is due, or the next renewal of a lease.
  [[nodiscard]] SteadyTime next_timer() const;
  void settle();

  // Changes of the ledger (ledger.cpp).
  void change_ledger();
  /// The operator frees allocations of schedulers.
  void force_free();
  [[nodiscard]] std::string any_id();
  [[nodiscard]] std::string any_partition();
  [[nodiscard]] bool is_absent(const std::string& host) const;
  [[nodiscard]] Reference::Ranks any_ranks(bool of_single_hosts = false);
  [[nodiscard]] nlohmann::json any_resources(const Reference::Ranks& ranks);
  /// Often ranks that the scheduler may allocate, as it knows.
  [[nodiscard]] Reference::Ranks any_held(const Scheduler& scheduler);
  [[nodiscard]] nlohmann::json any_allocation(const Scheduler& scheduler);
  /// An allocation that exists with this probability, or any id.
  [[nodiscard]] nlohmann::json any_free(double exists);
  using Allocations = std::vector<module::SharedAllocation>;
  /// A scheduler changes allocations of its partition in ways that are rare otherwise.
  void change_own(ClientId client, const Scheduler& scheduler);
  /// A repeated alloc with the terms of this allocation, which may be of other resources.
  [[nodiscard]] nlohmann::json alloc_again(const Scheduler& scheduler, const module::Allocation& allocation);
  /// Frees one of these allocations, and then a part of another one; nothing if there are no such two.
  [[nodiscard]] nlohmann::json free_whole_and_part(const Allocations& own);
  [[nodiscard]] double any_expiration();

  // Requests that a thread reads, and their turns (turns.cpp).
  /// The last event, and the sizes of the ledger and its parts.
  struct Standing {
    std::uint64_t applied = 0;
    std::size_t bytes = 0;
    std::size_t of_rest = 0;
    std::size_t of_left = 0;
  };
  [[nodiscard]] Standing standing() const;
  void ask_change(ClientId client, const char* topic, const nlohmann::json& payload, bool repeats);
  /// Finds the requests whose turn was in a piece of work, and waits for the thread if it reads one now, so
  /// that only the seed decides when the result arrives.
  void take_turns(const Standing& before);
  /// Checks a request for the ledger whose turn has been, if it is one.
  void take_turn(std::uint32_t matchtag, const Standing& before);
  /// Waits until a thread has read something, and returns the work that it has posted.
  [[nodiscard]] std::function<void()> wait_for_thread();
  /// Checks that each request for the ledger has an answer.
  void check_answered();

  // Leases (leases.cpp).
  /// The time in which the daemon ran.
  [[nodiscard]] Seconds awake() const { return uptime_ - SteadyTime{} - asleep_; }
  [[nodiscard]] static bool renews(const Scheduler& scheduler);
  /// When a scheduler sends something next if it has nothing to ask for.
  [[nodiscard]] static Seconds renewal(const Scheduler& scheduler);
  void renew();
  /// Whether a scheduler has sent nothing for its lease.
  [[nodiscard]] bool may_be_over(const Scheduler& scheduler) const;
  /// Gives the daemon the time to find the leases that are over.
  void end_leases();

  // Rolling work (rolling.cpp).
  [[nodiscard]] Roller::World world_of_roller();
  void roll();
  void begin_rolling_work();
  std::uint32_t ask_for_roller(const std::string& topic, const nlohmann::json& payload);
  /// Checks an action of the planner against the state on which it was decided.
  void judge_action(Roller::Kind kind, const Roller::Node& node);
  void check_budget(const Roller::Node& node, const Reference& state) const;
  /// Checks the answer to a request that has succeeded.
  void judge_success(Roller::Kind kind, const Roller::Node& node);
  /// Checks the present state: the drains of rolling work, and the nodes that become ready.
  void check_rolling();
  [[nodiscard]] Reference::Ranks ranks_of(const std::string& host) const;
  [[nodiscard]] bool is_ready(const std::string& host) const;

  // Loads of another R (loads.cpp).
  void load(const rset::ResourceSet& resources, const std::string& path, bool force, const By& by) override;
  void finish_load(std::uint32_t matchtag, const std::function<void()>& work);
  /// Finds the hosts of this start, and checks that a loaded R that is on disk is in force.
  void find_hosts(module::State& state);
  [[nodiscard]] std::vector<module::PartitionRule> partitions() const;
  [[nodiscard]] bool is_held() const;

  // Checks of the messages that clients receive (judgement.cpp).
  void deliver();
  void receive(ClientId client, const proto::Message& message);
  void receive(Scheduler& scheduler, const proto::Message& message);
  void receive(Consumer& consumer, const proto::Message& message);
  void receive_change(Scheduler& scheduler, const proto::Message& message);
  /// Takes a response that continues the allocations of the first one.
  void receive_page(Scheduler& scheduler, const proto::Message& message);
  /// Compares the numbers of a scheduler's responses: none is about an earlier state than the one before.
  static void follow_sequence(Scheduler& scheduler, const nlohmann::json& body);
  /// Takes what a response has beyond RFC 28, which is nothing that the scheduler has not asked for.
  void follow_extensions(Scheduler& scheduler, const nlohmann::json& body);
  /// Compares the causes of a response with the states that its targets had when they went down.
  void check_cause(const Scheduler& scheduler, const nlohmann::json& body);
  /// Compares what a scheduler knows beyond RFC 28 with the state after all events.
  void check_extensions(const Scheduler& scheduler, const Reference& state) const;
  void check_known_allocations(const Scheduler& scheduler, const Reference& state) const;
  /// Compares the ledger of the daemon with that of the log.
  void check_ledger(const Reference& state) const;
  void check_scheduled(const Reference& state) const;
  /// Checks what the daemon has freed by the clock since an event.
  void check_freed(std::uint64_t before);
  /// Checks that the daemon has freed every expired allocation.
  void check_expired(const Reference& state) const;
  /// Compares the state of the daemon with that to which the log leads, once all of it is on disk.
  void check_log() const;
  void receive(const Asked& asked, const proto::Message& message);
  void check_views();
  /// Checks the targets that have come online since the last call.
  void check_gate();
  /// The state after an event of this start, from the log up to that event.
  const Reference& state_after(std::uint64_t sequence);

  [[nodiscard]] std::uint32_t below(std::uint32_t limit);
  [[nodiscard]] bool chance(double probability);
  [[nodiscard]] std::string some_targets();
  [[nodiscard]] Configuration random_configuration();
  void note(std::string action);
  std::uint32_t request(ClientId client, const std::string& topic, const nlohmann::json& payload,
                        std::uint8_t flags = 0);
  ClientId connect();
  void disconnect(ClientId client);
  void run_due();
  template <class Peers>
  auto random_peer(Peers& peers) {
    return std::next(peers.begin(), below(static_cast<std::uint32_t>(peers.size())));
  }

  std::mt19937 random_;
  bool with_agents_;
  /// Whether the lower half of the ranks is a partition.
  bool with_partition_;
  std::size_t journal_max_;
  daemon::service::Bounds bounds_;
  module::LedgerRules ledger_rules_;
  Disk disk_;
  std::uint32_t generation_ = 0;
  /// The hosts of the configuration, and the inventory in force: these hosts, or a loaded R.
  std::vector<std::string> configured_hosts_;
  Configuration configuration_;
  /// The loads in their order. A crash may have lost the last ones.
  std::vector<Loaded> loads_;
  /// The states after the events of this start, as far as state_after() has computed them. `states_begin_` is
  /// the last event before this start, and `before_` the state after it, with the configuration of this
  /// start.
  std::vector<Reference> states_;
  std::uint64_t states_begin_ = 0;
  Reference before_;
  /// The state after the last event before this start.
  Reference ended_;
  /// Keyed by the sequence of the definition.
  std::map<std::uint64_t, Reload> reloads_;
  std::unique_ptr<SimLog> log_;
  SimTransport transport_;
  /// Work for the loop, and its timers.
  std::deque<std::function<void()>> later_;
  std::multimap<SteadyTime, std::function<void()>> timers_;
  const std::thread::id loop_ = std::this_thread::get_id();
  /// The file of an R to be loaded, the request that waits for it, and the result of the thread that reads
  /// it.
  test::TempDir directory_;
  std::optional<std::uint32_t> loading_;
  std::mutex mutex_;
  std::condition_variable is_posted_;
  std::function<void()> posted_;
  std::unique_ptr<daemon::service::Service> service_;
  std::uint64_t notified_ = 0;
  double now_ = 1000;
  /// The latest time that the clock has shown before it was last set.
  double latest_ = 0;
  /// By how much the clock was ahead of the uptime each time before it was set, as long as
  /// the daemon may not have looked at it since.
  std::vector<double> shown_;
  SteadyTime uptime_{};
  /// For how long the daemon has stood still.
  Seconds asleep_{0};
  /// The time before which the daemon must not free an expired allocation: a minute after a start or a jump
  /// of the clock.
  SteadyTime distrusted_until_{};
  /// The daemon looks at its clock once a minute, and waits for another one if it has jumped: by this time at
  /// the latest it frees expired allocations again.
  static constexpr Seconds unsure{130};
  SteadyTime unsure_until_{};
  /// How many messages clients have received.
  std::uint64_t received_ = 0;
  std::optional<SteadyTime> wake_;
  std::uint64_t last_client_ = 0;
  std::uint32_t last_matchtag_ = 0;
  ClientId operator_{};
  std::map<std::uint32_t, Asked> asked_;
  std::map<ClientId, Scheduler> schedulers_;
  std::uint64_t last_turn_of_scheduler_ = 0;
  /// For how long the daemon keeps what a lost scheduler held, and what it keeps, by partition.
  Seconds keep_;
  std::map<std::string, Kept> kept_;
  std::uint32_t last_token_ = 0;
  /// A request of a scheduler for the ledger, or for what it has acquired already.
  struct Change {
    ClientId client{};
    std::string topic;
    nlohmann::json payload;
    /// It is the one before with `repeat`.
    bool repeats = false;
    /// The errnum of a request that changes nothing.
    std::optional<std::uint32_t> refusal = std::nullopt;
    /// The last event when it had its turn, and its time; none before that.
    std::optional<std::uint64_t> after = std::nullopt;
    double asked = 0;
    /// The ledger has room for it.
    bool fits = true;
  };
  std::map<std::uint32_t, Change> ledger_asked_;
  /// Requests of a client that have not had their turn, by their matchtags.
  struct Line {
    std::deque<std::uint32_t> requests;
    /// The thread has read the first of them.
    bool is_read = false;
  };
  std::map<ClientId, Line> lines_;
  /// The last request for the ledger that had its turn.
  struct Turn {
    std::uint32_t matchtag = 0;
    std::uint64_t after = 0;
    bool is_done = false;
  };
  Turn last_turn_;
  std::map<ClientId, Consumer> consumers_;
  std::map<ClientId, Agent> agents_;
  /// Clients whose agents were replaced, and that are still connected, with their hosts.
  std::map<ClientId, std::string> ousted_;
  Roller roller_;
  std::optional<ClientId> roller_client_;
  /// The last event when the present request of rolling work had been handled, by matchtag.
  std::map<std::uint32_t, std::uint64_t> roller_asked_;
  /// The last event before the status that rolling work has last asked for, and before the answer that it
  /// takes.
  /// The last event that a request of the operator has caused.
  std::uint64_t operator_change_ = 0;
  std::uint64_t roller_looked_ = 0;
  std::uint64_t roller_answered_ = 0;
  /// The last event of the journal that it has seen.
  std::uint64_t roller_heard_ = 0;
  std::uint32_t works_ = 0;
  /// Hosts that were ready at some time since their command ended.
  std::set<std::string> were_ready_;
  /// Hosts that left the inventory while the rolling work had them drained.
  std::set<std::string> left_;
  /// Hosts whose last hello said that the agent runs checks.
  std::set<std::string> checked_;
  /// The agents of a host that has one target speak for each other; those of others for some target of it.
  [[nodiscard]] bool has_one_target(const std::string& host) const;
  /// No report of the present agents counts any more.
  void disown_agents();
  nodes::Settings agent_settings_;
  /// Hosts of which a check has passed since the last hello, and since the daemon has started.
  std::set<std::string> passed_;
  /// Hosts with one target, of whose checks none has passed since one has failed.
  std::set<std::string> failing_;
  text::IdSet seen_online_;
  std::uint64_t steps_ = 0;
  std::deque<std::string> trace_;
  Counts counts_;
};

}  // namespace resourced::sim
