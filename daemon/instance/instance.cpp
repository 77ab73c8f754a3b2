#include "daemon/instance/instance.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "daemon/instance/beginning.hpp"
#include "daemon/instance/broker.hpp"
#include "daemon/instance/channel_transport.hpp"
#include "daemon/instance/job_inquiry.hpp"
#include "daemon/instance/kvs_log.hpp"
#include "daemon/service/service.hpp"
#include "flux/module/channel.hpp"
#include "flux/module/duties.hpp"
#include "flux/module/reduction.hpp"
#include "process/loop.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace flux = ::resourced::flux;

using flux::link::Severity;
using flux::module::Channel;
using module::DefineMethod;
using nlohmann::json;
using process::wall_clock;
using proto::Message;
using rset::ResourceSet;
using text::IdSet;

namespace {

class Instance {
 public:
  Instance(Channel& channel, const flux::module::Welcome& welcome)
      : channel_(channel),
        welcome_(welcome),
        beginning_(read_beginning(channel, welcome, wall_clock())),
        settings_(beginning_.settings),
        log_(std::exchange(beginning_.kept.history, {}), settings_.journal_max, predecessor()),
        service_(log_, wall_clock, service_settings()),
        broker_(loop_, channel_,
                {[this](Channel::Received received) { take(std::move(received)); },
                 [this] { transport_.on_writable(); }, [this] { loop_.stop(); }}),
        transport_(
            ids_, service_, owner(),
            {[this](const Message& response, const std::string& mark) { broker_.send(response, mark); },
             [this] { return broker_.is_full(); }, [this] { return broker_.unsent(); },
             [this] {
               return Positions::Resources{module().acquirable(), module().inventory().expiration(),
                                           module().property_changes()};
             },
             [this](proto::ClientId client) { return service_.is_idle(client); },
             [this](proto::ClientId client, const Message& request,
                    const service::Service::Position& position) {
               service_.on_resumed(client, request, position);
             }}),
        duties_(channel_, welcome_),
        timer_(loop_),
        reduction_(beginning_.node.resources, welcome.size),
        jobs_(broker_,
              {[this](std::optional<ResourceSet> allocated) { service_.set_allocated(std::move(allocated)); },
               [this](const Message& request) { transport_.take(request); },
               [this](const Message& request, const Error& error) { channel_.refuse(request, error); },
               [this](std::function<void()> work) { asio::post(loop_, std::move(work)); }}),
        topology_(proto::make_payload(std::exchange(beginning_.node.xml, {}))) {
    log_to_broker(loop_, channel_);
    start_log();
    add_topics();
    begin();
  }

  int run() {
    broker_.begin();
    loop_.run();
    return exit_status_;
  }

 private:
  [[nodiscard]] std::uint32_t owner() const {
    std::uint32_t userid = 0;
    const auto found = welcome_.attributes.find("security.owner");
    if (found != welcome_.attributes.end())
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), userid);
    return userid;
  }

  [[nodiscard]] KvsLog::Predecessor predecessor() const {
    return {.has_readers = !channel_.is_first(),
            .has_defined = !channel_.is_first() && beginning_.found && beginning_.found->is_recorded};
  }

  service::Service::Settings service_settings() {
    return {.configuration = "{}",
            .journal_max = settings_.journal_max,
            .access = peers::Access({}, owner()),
            .limits = {},
            .uptime = process::steady_clock,
            .agents = std::nullopt,
            .wake_at = [this](SteadyTime when) { wake_at(when); },
            .reload = [] { throw Error(EPROTO, "resource.reload: path: missing"); },
            .load = [this](const ResourceSet& resources, const std::string& /*path*/,
                           bool force) { load(resources, force); },
            .later = [this](Seconds pause, auto work) { process::run_later(loop_, pause, std::move(work)); },
            .read_topologies = flux::module::read_topologies};
  }

  void wake_at(SteadyTime when) {
    process::run_at(timer_, when, [this] { service_.on_time(); });
  }

  void start_log() {
    log_.begin({[this](const json& request, std::function<void(const Error*)> done) {
                  broker_.call("kvs.commit", request, Channel::nearest(),
                               [done = std::move(done)](const Message& answer) {
                                 if (answer.errnum() == 0) return done(nullptr);
                                 const Error error = proto::response_error(answer);
                                 done(&error);
                               });
                },
                [this](std::function<void()> work) {
                  asio::post(loop_, [this, work = std::move(work)] {
                    work();
                    service_.on_answered();
                  });
                },
                [this](store::Sequence last) { on_committed(last); },
                [this](const Error& error) {
                  fail(Error(error.errnum(), fmt::format("kvs.commit: {}", error.what())));
                },
                [this](const std::string& name, const std::string& text) {
                  if (name == "drain" || name == "undrain")
                    channel_.log(Severity::info, drain_line(name, text));
                },
                [this] { return module().recorded_inventory().encode(); },
                [this] { return changes_to_json(module().property_changes()).dump(); }});
  }

  [[nodiscard]] const module::Module& module() const { return service_.engine().module(); }

  void begin() {
    for (const std::string& warning : beginning_.kept.warnings) channel_.log(Severity::warning, warning);
    if (beginning_.kept.rewritten) log_.change({{eventlog_key, *beginning_.kept.rewritten}});
    if (const auto& upgraded = beginning_.kept.upgraded) {
      channel_.log(Severity::info, fmt::format("resource.eventlog: reduced from {} to {} entries",
                                               upgraded->before, upgraded->after));
    }
    exclude_ = excluded_ranks(beginning_, welcome_.size);
    service_.step(engine::Begin{hosts(), beginning_.online, std::exchange(beginning_.kept.drains, {}),
                                beginning_.forced_online});
    if (beginning_.found) {
      define(beginning_.found->method, beginning_.found->resources);
      verify();
    }
    set_torpid(beginning_.torpid);
    follow_groups();
    if (beginning_.enclosing) {
      beginning_.enclosing->follow(loop_, [this](WallTime expiration) { set_expiration(expiration); });
    }
    finish_reduction();
    start_ = service_.engine().applied();
    service_.on_defined();
  }

  /// The hosts of ranks, also of those that are in R without a broker, as for tests of large clusters.
  [[nodiscard]] text::Hostlist hosts() const {
    const std::size_t targets = beginning_.found ? beginning_.found->resources.ranks().count() : 0;
    const std::size_t count = std::min(welcome_.hosts.size(), std::max<std::size_t>(welcome_.size, targets));
    return welcome_.hosts.select(IdSet::range(0, static_cast<IdSet::Id>(count - 1)));
  }

  void define(DefineMethod method, ResourceSet resources) {
    service_.step(engine::DefineInstance{method, std::make_shared<const ResourceSet>(std::move(resources)),
                                         exclude_, beginning_.properties.added,
                                         beginning_.properties.removed});
    beginning_.properties = {};
  }

  void verify() {
    // Only when the module is loaded: an operator may have undrained the rank before a later restart.
    if (!channel_.is_first() || settings_.noverify || beginning_.arguments.noverify || beginning_.is_recovery)
      return;
    if (beginning_.found->method == DefineMethod::job_info && !settings_.is_verify_set) return;
    const std::string reason = flux::module::mismatch(welcome_.rank, beginning_.found->resources,
                                                      beginning_.node.resources, settings_.verify);
    if (reason.empty()) return;
    channel_.log_error("draining: " + reason);
    try {
      service_.step(module::Command(
          module::DrainCommand{std::to_string(welcome_.rank), reason, module::DrainMode::update}));
    } catch (const Error& error) {
      channel_.log_error(fmt::format("cannot drain rank {}: {}", welcome_.rank, error.what()));
    }
  }

  void follow_groups() {
    if (!beginning_.online_stream) return;
    follow(*beginning_.online_stream, "online", [this](const IdSet& ranks) { set_online(ranks); });
    follow(*beginning_.torpid_stream, "torpid", [this](const IdSet& ranks) { set_torpid(ranks); });
  }

  /// What an answer that cannot be read would say is not known: the last one that could be read holds.
  void follow(std::uint32_t stream, std::string_view group, std::function<void(const IdSet&)> set) {
    broker_.expect(stream, [this, group, set = std::move(set)](const Message& answer) {
      try {
        if (answer.errnum() != 0) throw proto::response_error(answer);
        set(members(answer));
      } catch (const std::exception& error) {
        channel_.log(Severity::critical, fmt::format("monitor: broker.{}: {}", group, error.what()));
      }
    });
  }

  void set_expiration(WallTime expiration) {
    try {
      service_.take(engine::SetExpiration{{expiration}}, "enclosing instance");
    } catch (const Error& error) {
      channel_.log_error(fmt::format("the expiration of the job cannot be used: {}", error.what()));
    }
  }

  void set_online(const IdSet& online) {
    module::MonitorCommand command;
    command.offline = module().online() - online;
    command.online = online - module().online();
    command.torpid = torpid_ & command.online;
    observe(std::move(command));
  }

  void set_torpid(IdSet torpid) {
    torpid_ = std::move(torpid);
    module::MonitorCommand command;
    command.torpid = (torpid_ & module().online()) - module().torpid();
    command.lively = module().torpid() - torpid_;
    observe(std::move(command));
  }

  void observe(module::MonitorCommand command) {
    if (command.empty()) return;
    try {
      service_.take(module::Command(std::move(command)), "monitor");
    } catch (const Error& error) {
      channel_.log_error(fmt::format("monitor: {}", error.what()));
    }
  }

  void reduce(const Message& report) {
    if (reduction_.take(report, channel_)) finish_reduction();
  }

  void finish_reduction() {
    if (!reduction_.is_complete() || module().defined()) return;
    try {
      ResourceSet resources = reduction_.resources();
      if (beginning_.expiration != WallTime{}) resources.set_expiration(beginning_.expiration);
      define(DefineMethod::dynamic_discovery, std::move(resources));
    } catch (const Error& error) {
      return channel_.log_error(fmt::format("the discovered resources cannot be used: {}", error.what()));
    }
    service_.on_defined();
  }

  void add_topics() {
    using flux::module::Right;
    duties_.add("topo-get", Right::user,
                [this](const Message& request) { channel_.respond(request, topology_); });
    duties_.add("topo-reduce", Right::owner, [this](const Message& request) { reduce(request); });
    const auto reconfigure = [this](const Message& request) {
      // The rest takes effect when the module is loaded again.
      const auto settings = flux::module::read_settings(proto::parse_object(request, most_values),
                                                        welcome_.rank, welcome_.hosts);
      log_.set_most(settings.journal_max);
      service_.set_journal_max(settings.journal_max);
      channel_.respond(request);
    };
    duties_.add("config-reload", Right::owner, reconfigure);
    duties_.add("config-update", Right::owner, reconfigure);
    duties_.add("sched-status", Right::user, [this](const Message& request) {
      // Before R is known the service refuses it.
      if (!module().defined()) return transport_.take(request);
      jobs_.ask(request);
    });
  }

  void take(Channel::Received received) {
    Message& message = received.message;
    if (stopping_) return;
    if (message.type == proto::MessageType::event || duties_.serves(message.topic)) {
      if (!duties_.take(message)) shut_down();
      return;
    }
    if (proto::is_disconnect(message.topic)) jobs_.forget(message);
    transport_.take(std::move(message), received.mark);
  }

  void load(const ResourceSet& resources, bool force) {
    if (resources.ranks().last() >= welcome_.size) {
      // Flux's text, with its misspelling.
      if (!force) {
        throw Error(EINVAL,
                    fmt::format("resource object contains ranks execeeding size={} (override with -f))",
                                welcome_.size));
      }
      channel_.log_error(
          fmt::format("WARN: resource object contains ranks exceeding size={}", welcome_.size));
    }
    define(DefineMethod::reload, resources);
  }

  void on_committed(store::Sequence last) {
    service_.on_committed(last);
    if (last < start_ || std::exchange(is_running_, true)) return;
    channel_.running();
    // What the texts of the KVS took while they were read.
    ::malloc_trim(0);
  }

  /// The KVS has refused a commit: the requests in hand get the error, and the keeper starts this program
  /// again.
  void fail(const Error& error) {
    channel_.log(Severity::critical, error.what());
    if (!is_running_) channel_.failed(error.errnum());
    service_.on_store_failed(error);
    exit_status_ = 1;
    loop_.stop();
  }

  // Commits the events that were decided, then the present drains as the checkpoint, and ends the module.
  void shut_down() {
    stopping_ = true;
    service_.shut_down();
    std::optional<KvsChange> checkpoint;
    if (!beginning_.is_recovery) {
      checkpoint = {checkpoint_key,
                    encode_checkpoint(wall_clock(), module().drains(), module().addressable())};
    }
    log_.finish(std::move(checkpoint), [this] {
      // The responses that have waited for the commit.
      channel_.flush_all();
      loop_.stop();
    });
  }

  Channel& channel_;
  const flux::module::Welcome& welcome_;
  // Before what waits for descriptors in it.
  asio::io_context loop_{1};
  Beginning beginning_;
  flux::module::Settings settings_;
  KvsLog log_;
  service::Service service_;
  transport::ClientIds ids_;
  Broker broker_;
  ChannelTransport transport_;
  flux::module::Duties duties_;
  asio::steady_timer timer_;
  IdSet exclude_;
  /// The ranks that the brokers call torpid, online or not.
  IdSet torpid_;
  flux::module::Reduction reduction_;
  JobInquiry jobs_;
  proto::Payload topology_;
  /// The last event of the start.
  store::Sequence start_ = 0;
  bool is_running_ = false;
  bool stopping_ = false;
  int exit_status_ = 0;
};

}  // namespace

int run() {
  const flux::module::Inherited inherited = flux::module::read_environment();
  flux::module::Welcome welcome;
  try {
    welcome = flux::module::read_welcome(inherited.welcome);
  } catch (const Error& error) {
    // Of rank 0, as this service is.
    Channel channel(inherited.link, inherited.generation, 0);
    channel.log_error(error.what());
    channel.failed(error.errnum());
    return 1;
  }
  Channel channel(inherited.link, inherited.generation, welcome.rank);
  std::optional<Instance> instance;
  try {
    instance.emplace(channel, welcome);
  } catch (const Error& error) {
    channel.log_error(error.what());
    channel.failed(error.errnum());
    return 1;
  } catch (const json::exception& error) {
    channel.log_error(error.what());
    channel.failed(EPROTO);
    return 1;
  }
  return instance->run();
}

}  // namespace resourced::daemon::instance
