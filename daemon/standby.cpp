#include "daemon/standby.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "config/reload.hpp"
#include "core/cluster/files.hpp"
#include "core/cluster/member.hpp"
#include "core/cluster/roster.hpp"
#include "core/error.hpp"
#include "daemon/account_watch.hpp"
#include "daemon/inventory.hpp"
#include "daemon/listeners.hpp"
#include "daemon/log/etcd/file_digests.hpp"
#include "daemon/log/etcd/identity.hpp"
#include "daemon/log/etcd/intake.hpp"
#include "daemon/log/etcd/leader_log.hpp"
#include "daemon/log/etcd/loop_runtime.hpp"
#include "daemon/log/etcd/record_json.hpp"
#include "daemon/log/etcd/resignation.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_install.hpp"
#include "daemon/membership.hpp"
#include "daemon/process.hpp"
#include "daemon/service/service.hpp"
#include "daemon/settings.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"
#include "os/service.hpp"
#include "os/signals.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {

namespace asio = boost::asio;
using ::resourced::cluster::Batch;
using ::resourced::cluster::differing_files;
using ::resourced::cluster::FileDigests;
using ::resourced::cluster::Replica;
using ::resourced::cluster::Roster;
using ::resourced::cluster::SnapshotHeader;

namespace {

// Throws the errors of a start as the leader that the configuration alone decides. Returns the digests of its
// files.
FileDigests check_configuration(const config::Config& config, const std::string& directory,
                                const std::vector<proto::Endpoint>& at) {
  std::optional<Error> fault;
  const config::Inventory inventory = starting_inventory(config, directory, fault);
  (void)parent_connection(config, at);
  (void)access(config);
  (void)http_site(config.http);
  return log::etcd::file_digests(config, inventory);
}

// Throws the errors of such a start with the state of the replica. A member that knows a leader would take
// over its inventory.
void check_with(const log::Store::Present& present, config::Config config, const std::string& directory,
                bool takes_over) {
  if (const auto* error = std::get_if<Error>(&present)) throw Error(*error);
  if (takes_over) config.resource.rediscover = false;
  std::optional<Error> fault;
  config::Inventory inventory = starting_inventory(config, directory, fault);
  (void)check_start(config, std::move(inventory), std::get<module::State>(present), fault);
}

// Returns the parts of an event that must be the same in two members, as etcd has them.
std::string compared(log::Sequence sequence, WallTime timestamp, const std::string& text) {
  log::Record record;
  record.sequence = sequence;
  record.timestamp = timestamp;
  record.text = text;
  return log::etcd::encode_record(record);
}

}  // namespace

struct Standby::State final : service::Program, service::Following {
  State(const Options& given, config::Config read)
      : options(given),
        config(std::move(read)),
        directory(state_directory(options, config)),
        at(endpoints(options, config.bus)),
        store(directory),
        signals(loop, [this](int number) { take_signal(number); }),
        last(store.last_event()),
        state(store.load()),
        service(store, *this, service_settings()),
        listeners(loop, service, config),
        flush(loop, listeners, [this] { return service.unsent(); }),
        watchdog(loop),
        accounts(
            loop, config.access.rules,
            [this](const config::UserGroups& groups) {
              service.set_access_rules(config.access.rules, groups);
            },
            [this] { return service.connected_users(); }),
        intake(loop, store.last_sequence(),
               {[this](log::Record record) {
                  service.follow(record);
                  appended = record.sequence;
                  store.append(std::move(record));
                },
                [this](bool is_busy) { coordinator->set_busy(is_busy); },
                [this](const Error& error) { fail(error); },
                [this](const log::Record& record) { compare(record); }}) {
    files = check_configuration(config, directory, at);
    listeners.listen(at, config);
    Replica replica;
    replica.cluster = log::etcd::read_identity(directory);
    replica.applied = appended = store.last_sequence();
    member = std::make_unique<log::etcd::Member>(member_settings(options, config), std::move(replica));
    member->tell_files(files);
    coordinator = std::make_unique<log::etcd::Coordinator>(
        std::make_unique<log::etcd::LoopRuntime>(loop, config.cluster), *member);
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;

  ~State() override {
    // The store's threads post to the loop, which must outlive them.
    store.stop();
  }

  service::Service::Settings service_settings() {
    return {.configuration = config::to_json(config).dump(),
            .journal_max = config.resource.journal_max,
            .access = access(config),
            .limits = config.limits,
            .following = this,
            .state = std::move(state)};
  }

  // Functions of service::Program and service::Following.

  [[nodiscard]] WallTime wall_now() const override { return os::wall_clock(); }
  [[nodiscard]] SteadyTime steady_now() const override { return os::steady_clock(); }
  void run_later(Seconds pause, std::function<void()> work) override {
    os::run_later(loop, pause, std::move(work));
  }
  // Does nothing, as the engine of a standby takes no steps.
  void wake_at(SteadyTime /*when*/) override {}
  // reload() and load() need a leader.
  void reload(const By& /*by*/) override { throw Error(EHOSTUNREACH, standing().line()); }
  void load(const rset::ResourceSet& /*resources*/, const std::string& /*path*/, bool /*force*/,
            const By& /*by*/) override {
    throw Error(EHOSTUNREACH, standing().line());
  }
  void on_user(std::uint32_t uid) override { accounts.saw(uid); }
  void ask_roster(TakeRoster take) override { coordinator->ask_roster(std::move(take)); }
  [[nodiscard]] Standing standing() const override { return standing_at(os::boot_clock()); }

  void start() {
    store.start({[this](std::function<void()> work) {
                   asio::post(loop, [this, work = std::move(work)] {
                     const transport::LoopHold hold(&service.holds(), "store");
                     work();
                     service.on_answered();
                   });
                 },
                 [this](log::Sequence last) {
                   stored_at = os::boot_clock();
                   service.on_committed(last);
                   intake.on_stored(last);
                 },
                 [this](const Error& error) { fail(error); }});
    log::etcd::Coordinator::Callbacks callbacks;
    callbacks.joined = [this](const std::string& cluster) {
      try {
        log::etcd::write_identity(directory, cluster);
      } catch (const Error& error) {
        fail(error);
      }
    };
    callbacks.entry = [this](const Batch& batch) { intake.take(batch); };
    callbacks.restores = [this](const SnapshotHeader& snapshot) { restore(snapshot); };
    callbacks.chunk = [this](const std::string& chunk) { take_chunk(chunk); };
    callbacks.restored = [this] {
      is_restored = true;
      loop.stop();
    };
    // The lease is kept alive while the store catches up.
    callbacks.leads = [this] {
      intake.when_stored([this] {
        if (!stops) loop.stop();
      });
      stored_at = os::boot_clock();
      watch_store();
    };
    callbacks.ended = [this](const std::string& why) {
      if (stops) return flush.begin();
      os::log_warning("has lost the lease before it could lead, and follows again: {}", why);
      loop.stop();
    };
    callbacks.failed = [this](const Error& error) { fail(error); };
    callbacks.changed = [this] {
      const BootTime now = os::boot_clock();
      if (member->follows() && member->is_in_touch(now)) leader_seen = now;
      check_once();
      tell(now);
    };
    coordinator->start(std::move(callbacks));
    compare_files();
  }

  // Gives the lease up that was won if the disk hangs, so that another member leads.
  void watch_store() {
    static constexpr Seconds pause{1};
    const Seconds hangs = os::boot_clock() - stored_at;
    if (hangs < log::etcd::LogLimits().longest_hang)
      return os::run_later(loop, pause, [this] { watch_store(); });
    os::log_error("the store has not written an event for {:.0f} s: gives the lease up", hangs.count());
    coordinator->resign();
  }

  // Compares the files repeatedly, as the leader may read its files again, too.
  void compare_files() {
    static constexpr Seconds pause{1};
    coordinator->ask_roster([this](const auto& answer) {
      if (const auto* roster = std::get_if<Roster>(&answer)) leading = leading_files(*roster);
      tell(os::boot_clock());
      os::run_later(loop, pause, [this] { compare_files(); });
    });
  }

  void restore(const SnapshotHeader& snapshot) {
    os::log_info("takes the snapshot of event {} in place of this store, which ends with event {}",
                 snapshot.sequence, store.last_sequence());
    try {
      incoming.emplace(directory);
      incoming_last = snapshot.sequence;
    } catch (const Error& error) {
      fail(error);
    }
  }

  void take_chunk(const std::string& chunk) {
    if (failure) return;
    try {
      incoming->append(chunk);
    } catch (const Error& error) {
      fail(error);
    }
  }

  void compare(const log::Record& record) const {
    if (!last || record.sequence != last->sequence) return;
    const std::string text = record.hidden ? "" : record.text;
    if (compared(record.sequence, record.timestamp, text) ==
        compared(last->sequence, last->timestamp, last->text))
      return;
    throw Error(ESTALE,
                fmt::format("event {} in etcd is not the one of this store: etcd was restored from an older "
                            "backup, or this store has events of its own; give it a copy of another member's "
                            "store",
                            record.sequence));
  }

  bool knows_leader() const { return leader_seen || member->follows(); }

  // Checks the configuration once the replica is complete, as its inventory may be another than the
  // configured one.
  void check_once() {
    if (is_checked || !member->is_abreast() || appended < member->applied()) return;
    is_checked = true;
    store.read_present([this](const log::Store::Present& present) {
      try {
        check_with(present, config, directory, knows_leader());
      } catch (const Error& error) {
        fail(error);
      }
    });
  }

  void fail(const Error& error) {
    if (!failure) failure = error;
    loop.stop();
  }

  Standing standing_at(BootTime now) const {
    const bool is_in_touch = member->is_in_touch(now);
    std::string text = "standby";
    if (!coordinator->trouble().empty() && !is_in_touch) {
      text += fmt::format(", etcd does not answer ({})", coordinator->trouble());
    } else if (!member->refusal().empty()) {
      text += fmt::format(", etcd refuses requests ({})", member->refusal());
    } else if (!member->has_joined()) {
      text += ", joins the cluster";
    } else if (const auto& leader = member->leader()) {
      text += fmt::format(", {} leads at {}", leader->name, leader->uri);
    } else {
      text += ", no leader";
    }
    if (member->waits_for_snapshot()) text += ", waits for a snapshot of it";
    return {std::move(text), is_in_touch && member->has_joined() && !member->waits_for_snapshot(),
            differing_files(files, leading).value_or(std::vector<std::string>())};
  }

  // Logs a line for each change of status, and tells systemd. A change of the cause alone does not count, as
  // its endpoints may take turns.
  void tell(BootTime time) {
    const Standing at_time = standing_at(time);
    const std::string now = at_time.line();
    std::string lasting = at_time.text.substr(0, at_time.text.find(" ("));
    lasting += fmt::format("{}", fmt::join(at_time.differs, " "));
    if (std::exchange(told, lasting) == lasting) return;
    if (!std::exchange(is_ready, true)) {
      os::notify_ready(now);
    } else {
      os::notify_status(now);
    }
    os::log(at_time.differs.empty() ? os::Level::info : os::Level::warning, "{}", fmt::make_format_args(now));
  }

  void take_signal(int number) {
    if (number == SIGHUP) return reload();
    os::log_info("stopping on signal {}", number);
    if (std::exchange(stops, true)) return loop.stop();
    os::notify_stopping();
    listeners.stop_reading();
    service.shut_down();
    coordinator->resign();
    // If etcd does not answer, the lease ends by itself.
    os::run_later(loop, config.cluster.lease_ttl / 2, [this] { flush.begin(); });
  }

  // Reads the configuration again, and checks it with the replica, which the thread of the store reads. If
  // this role ends before that has answered, the next one reloads.
  void reload() {
    ++reloads;
    signals.leave(SIGHUP);
    try {
      listeners.check_reachable();
      config::Config next = load_configuration(options);
      config::check_settings(config, next);
      FileDigests read = check_configuration(next, directory, at);
      store.read_present([this, next = std::move(next), read = std::move(read)](const auto& present) {
        try {
          check_with(present, next, directory, knows_leader());
          apply(next, read);
        } catch (const Error& error) {
          refuse(error);
        }
      });
    } catch (const Error& error) {
      refuse(error);
    }
  }

  void end_reload() {
    if (--reloads == 0) signals.leave(std::nullopt);
  }

  void refuse(const Error& why) {
    end_reload();
    os::log_error("reload refused, the old configuration stays in force: {}", why.what());
  }

  void apply(const config::Config& next, const FileDigests& read) {
    const peers::Access rules = access(next);
    http::Site site = http_site(next.http);
    const bool revokes = revokes_keys(config.access, next.access);
    config = reloaded(next, config);
    files = read;
    member->tell_files(files);
    service.set_configuration(config::to_json(config).dump());
    service.set_journal_max(config.resource.journal_max);
    service.set_limits(config.limits);
    listeners.set_site(std::move(site));
    service.set_access(rules);
    if (revokes) listeners.drop_silent();
    if (!options.log_level) set_log_level(config.log.level);
    os::log_info("configuration reloaded: its inventory is served once this daemon leads");
    end_reload();
    tell(os::boot_clock());
  }

  const Options options;
  config::Config config;
  const std::string directory;
  const std::vector<proto::Endpoint> at;
  asio::io_context loop{1};
  log::Store store;
  /// Initialized before anything that starts threads, as in Server.
  os::Signals signals;
  /// The last event of the store at the start.
  const std::optional<log::LoggedEvent> last;
  /// The state at the start, for the service.
  module::State state;
  std::unique_ptr<log::etcd::Member> member;
  std::unique_ptr<log::etcd::Coordinator> coordinator;
  service::Service service;
  Listeners listeners;
  ResponseFlush flush;
  os::Watchdog watchdog;
  AccountWatch accounts;
  log::etcd::Intake intake;
  /// Digests of the files of this daemon, and those of the leader, as far as it tells them.
  FileDigests files;
  FileDigests leading;
  std::optional<Error> failure;
  std::optional<BootTime> leader_seen;
  /// The status that was last logged, without its cause.
  std::string told;
  bool is_ready = false;
  /// A snapshot that is being received, and its last event.
  std::optional<log::IncomingStore> incoming;
  log::Sequence incoming_last = 0;
  bool is_restored = false;
  /// The last event that the store has, or was given.
  log::Sequence appended = 0;
  /// When the store last wrote events, or this daemon has won.
  BootTime stored_at{};
  /// Number of reloads that have begun and not ended.
  std::size_t reloads = 0;
  /// Whether the configuration was checked with the replica.
  bool is_checked = false;
  bool stops = false;
};

Standby::Standby(const Options& options, config::Config config)
    : state_(std::make_unique<State>(options, std::move(config))) {}

Standby::~Standby() = default;

std::unique_ptr<log::etcd::Member> Standby::run() {
  state_->start();
  state_->loop.run();
  if (state_->failure) {
    // The member may have won the election meanwhile.
    state_->coordinator.reset();
    log::etcd::resign(state_->config.cluster, *state_->member);
    throw Error(*state_->failure);
  }
  if (state_->stops) return nullptr;
  // Clients of the standby find the leader, which must not wait for them.
  state_->listeners.abandon();
  if (!state_->member->leads()) return nullptr;
  state_->coordinator.reset();
  return std::move(state_->member);
}

bool Standby::follows_on() const noexcept { return !state_->stops && state_->member; }

std::optional<BootTime> Standby::leader_seen() const noexcept { return state_->leader_seen; }

std::optional<log::Sequence> Standby::restored() const noexcept {
  return state_->is_restored ? std::optional(state_->incoming_last) : std::nullopt;
}

const config::Config& Standby::configuration() const noexcept { return state_->config; }

std::unique_ptr<log::etcd::Member> follow(const Options& options, config::Config& config,
                                          std::optional<BootTime>& led) {
  while (true) {
    std::unique_ptr<log::etcd::Member> member;
    std::optional<log::Sequence> restored;
    bool follows_on = false;
    {
      Standby standby(options, config);
      member = standby.run();
      follows_on = standby.follows_on();
      restored = standby.restored();
      config = standby.configuration();
      led = std::max(led, standby.leader_seen());
    }
    if (!follows_on) return member;
    if (restored) log::install_store(state_directory(options, config), *restored);
  }
}

}  // namespace resourced::daemon
