#include "daemon/instance/attachment.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/module/rank_map.hpp"
#include "core/rset/operations.hpp"
#include "daemon/instance/kept_state.hpp"
#include "os/loop.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace flux = ::resourced::flux;

using flux::link::Severity;
using module::DefineMethod;
using nlohmann::json;
using os::wall_clock;
using proto::Message;
using rset::ResourceSet;
using text::IdSet;

namespace {

constexpr std::string_view acquire_topic = "resource.acquire";
/// The reason why the streams of schedulers outside of the instance end.
constexpr std::string_view taken = "the scheduler of the Flux instance has these resources";

std::uint32_t owner_of(const flux::module::Welcome& welcome) {
  std::uint32_t userid = 0;
  const auto found = welcome.attributes.find("security.owner");
  if (found != welcome.attributes.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), userid);
  return userid;
}

}  // namespace

Attachment::Attachment(asio::io_context& loop, Channel& channel, const Welcome& welcome, Beginning beginning,
                       service::Service& service, transport::ClientIds& ids, Owner owner)
    : loop_(loop),
      channel_(channel),
      welcome_(welcome),
      beginning_(std::move(beginning)),
      service_(service),
      owner_(std::move(owner)),
      broker_(loop_, channel_,
              {[this](Channel::Received received) { take(std::move(received)); },
               [this] { transport_.on_writable(); }, [this] { finish_end(); }}),
      transport_(ids, service_, owner_of(welcome),
                 {[this](const Message& response, const std::string& mark) { broker_.send(response, mark); },
                  [this] { return broker_.is_full(); }, [this] { return broker_.unsent(); },
                  [this] {
                    return Positions::Resources{module().acquirable(), module().inventory().expiration(),
                                                module().property_changes()};
                  },
                  [this](proto::ClientId client) { return service_.is_idle(client); },
                  [this](proto::ClientId client, const Message& request,
                         const service::Service::Position& position) { resume(client, request, position); },
                  owner_.keeps_all}),
      duties_(channel_, welcome_),
      reduction_(beginning_.node.resources, welcome.size),
      jobs_(broker_,
            {[this](std::optional<ResourceSet> allocated) { service_.set_allocated(std::move(allocated)); },
             [this](const Message& request) { transport_.take(request); },
             [this](const Message& request, const Error& error) { channel_.refuse(request, error); },
             [this](std::function<void()> work) { asio::post(loop_, std::move(work)); },
             [this](service::JobAnswer told) { service_.on_jobs(std::move(told)); },
             [this](const IdSet& ranks) { return service_.awaits_jobs(ranks); },
             [this] { return !service_.engine().acquisition().reported().empty(); },
             [this](const std::string& text) { channel_.log(Severity::warning, text); }}),
      topology_(proto::make_payload(std::exchange(beginning_.node.xml, {}))) {
  add_topics();
}

void Attachment::begin() {
  recall();
  exclude_ = excluded_ranks(beginning_, welcome_.size);
  report_kept();
  begin_brokers();
  if (beginning_.found) {
    define_found();
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
  service_.set_job_manager(&jobs_);
  broker_.begin();
}

void Attachment::report_kept() {
  for (const std::string& warning : beginning_.kept.warnings) channel_.log(Severity::warning, warning);
  if (beginning_.kept.rewritten) owner_.change({{eventlog_key, *beginning_.kept.rewritten}});
  if (beginning_.kept.rewritten_actors) owner_.change({{actors_key, *beginning_.kept.rewritten_actors}});
  if (const auto& upgraded = beginning_.kept.upgraded) {
    channel_.log(Severity::info, fmt::format("resource.eventlog: reduced from {} to {} entries",
                                             upgraded->before, upgraded->after));
  }
}

/// Returns the hosts of ranks, also of those that are in R without a broker, as for tests of large clusters.
text::Hostlist Attachment::hosts() const {
  const std::size_t targets = beginning_.found ? beginning_.found->resources.ranks().count() : 0;
  const std::size_t count = std::min(welcome_.hosts.size(), std::max<std::size_t>(welcome_.size, targets));
  return welcome_.hosts.select(IdSet::range(0, static_cast<IdSet::Id>(count - 1)));
}

// Recalls the state of the service. A service that has served the instance before may have later changes than
// the KVS, which were made while no broker was running.
void Attachment::recall() {
  if (!service_.engine().has_state()) return;
  const module::Module& known = module();
  has_same_brokers_ = known.brokers() == hosts();
  module::PropertyChanges changes = known.property_changes();
  ResourceSet resources = known.configured();
  resources.set_expiration(known.inventory().expiration());
  if (!has_same_brokers_) {
    const ResourceSet targets = module::targets_of_brokers(hosts(), {});
    const module::RankMap map(known.addressable(), targets);
    resources = module::renumbered(resources, map, targets);
    for (auto* properties : {&changes.added, &changes.removed}) {
      for (auto& [name, ranks] : *properties) ranks = map(ranks);
    }
  }
  beginning_.properties = std::move(changes);
  beginning_.kept.drains.clear();
  const bool is_configured =
      channel_.is_first() && beginning_.found && beginning_.found->method == DefineMethod::configuration;
  if (is_configured || !known.defined() || resources.empty()) return;
  beginning_.found = {std::move(resources), known.method(), false};
}

void Attachment::begin_brokers() {
  torpid_ = beginning_.torpid;
  // End the streams before any target comes online, because the jobs of the instance's scheduler run there.
  if (channel_.has_resumed(acquire_topic)) end_schedulers(taken);
  if (has_same_brokers_) return set_online(beginning_.online | beginning_.forced_online);
  if (service_.engine().has_state()) end_schedulers("the Flux instance has other brokers than before");
  service_.step(
      engine::Start{.state = std::move(beginning_.state),
                    .brokers = engine::Brokers{hosts(), beginning_.online, std::move(beginning_.kept.drains),
                                               beginning_.forced_online}});
}

/// Whether the service already has these resources, not counting properties and expiration.
bool Attachment::is_known(const ResourceSet& resources) const {
  const ResourceSet& known = module().configured();
  const auto is_same = [](const rset::ResourceGroup& a, const rset::ResourceGroup& b) {
    return a.ranks == b.ranks && a.cores == b.cores && a.gpus == b.gpus;
  };
  return module().defined() && known.nodelist() == resources.nodelist() &&
         std::ranges::equal(known.groups(), resources.groups(), is_same);
}

void Attachment::define_found() {
  const bool is_same = is_known(beginning_.found->resources);
  if (is_same && !channel_.is_first() && exclude_ == module().excluded()) return;
  if (!is_same && module().defined()) end_schedulers("the Flux instance has other resources than before");
  define(beginning_.found->method, beginning_.found->resources);
}

/// Ends the streams of schedulers outside of the instance, because the targets that they have acquired are
/// about to change.
void Attachment::end_schedulers(std::string_view why) {
  service_.end_schedulers(Error(ESTALE, fmt::format("{}: acquire again", why)), &transport_);
}

void Attachment::resume(proto::ClientId client, const Message& request,
                        const service::Service::Position& position) {
  if (std::holds_alternative<streams::SchedulerPosition>(position)) end_schedulers(taken);
  service_.on_resumed(client, request, position);
}

void Attachment::commit(const json& request, std::function<void(const Error*)> done) {
  broker_.call("kvs.commit", request, Channel::nearest(), [done = std::move(done)](const Message& answer) {
    if (answer.errnum() == 0) return done(nullptr);
    const Error error = proto::response_error(answer);
    done(&error);
  });
}

KvsLog::Callbacks Attachment::log_callbacks(std::function<void(std::function<void()>)> post,
                                            std::function<void(log::Sequence)> committed,
                                            std::function<void(const Error&)> failed) {
  return {.commit = [this](const json& request, auto done) { commit(request, std::move(done)); },
          .post = std::move(post),
          .committed = std::move(committed),
          .failed =
              [this, failed = std::move(failed)](const Error& refused) {
                const Error error(refused.errnum(), fmt::format("kvs.commit: {}", refused.what()));
                fail(error);
                failed(error);
              },
          .recorded =
              [this](const std::string& name, const std::string& text) {
                if (name == "drain" || name == "undrain")
                  channel_.log(Severity::info, drain_line(name, text));
              },
          .resources = [this] { return module().recorded_inventory().encode(); },
          .properties = [this] { return changes_to_json(module().property_changes()).dump(); }};
}

void Attachment::copy_state() {
  std::vector<KvsChange> changes;
  if (module().defined()) {
    changes.push_back({resources_key, module().recorded_inventory().encode()});
    changes.push_back({properties_key, changes_to_json(module().property_changes()).dump()});
  }
  if (!beginning_.is_recovery) changes.push_back(checkpoint());
  owner_.change(std::move(changes));
}

/// Returns the checkpoint with the present drains, which Flux reads at its next start. An instance in
/// recovery writes none.
KvsChange Attachment::checkpoint() const {
  return {checkpoint_key, encode_checkpoint(wall_clock(), module().drains(), module().addressable())};
}

bool Attachment::on_committed(log::Sequence last) {
  if (last < start_ || is_over_ || std::exchange(is_running_, true)) return false;
  channel_.running();
  return true;
}

void Attachment::fail(const Error& error) {
  channel_.log(Severity::critical, error.what());
  if (!is_running_) channel_.failed(error.errnum());
}

// Commits the pending events, then the present drains as the checkpoint, and ends the module.
void Attachment::shut_down() {
  stopping_ = true;
  service_.end_requests(transport_);
  std::optional<KvsChange> last;
  if (!beginning_.is_recovery) last = checkpoint();
  owner_.finish(std::move(last), [this] {
    // Wait until the responses that depended on the commit are sent.
    broker_.when_sent([this] { finish_end(); });
  });
}

void Attachment::finish_end() {
  if (!std::exchange(is_over_, true)) owner_.over();
}

void Attachment::end() {
  is_over_ = stopping_ = true;
  service_.set_job_manager(nullptr);
  broker_.close();
  jobs_.end();
  transport_.end_all();
}

void Attachment::define(DefineMethod method, ResourceSet resources, const std::optional<module::Actor>& by) {
  service_.step(module::Command(module::DefineCommand{
                    method, std::make_shared<const ResourceSet>(std::move(resources)), exclude_,
                    beginning_.properties.added, beginning_.properties.removed}),
                by);
  beginning_.properties = {};
}

void Attachment::verify() {
  // Verify only when the module is loaded: an operator may have undrained the rank before a later restart.
  if (!channel_.is_first() || beginning_.settings.noverify || beginning_.arguments.noverify ||
      beginning_.is_recovery)
    return;
  if (beginning_.found->method == DefineMethod::job_info && !beginning_.settings.is_verify_set) return;
  const std::string reason = flux::module::mismatch(welcome_.rank, beginning_.found->resources,
                                                    beginning_.node.resources, beginning_.settings.verify);
  if (reason.empty()) return;
  channel_.log_error("draining: " + reason);
  try {
    service_.step(module::Command(
        module::DrainCommand{{reason}, std::to_string(welcome_.rank), module::DrainMode::update}));
  } catch (const Error& error) {
    channel_.log_error(fmt::format("cannot drain rank {}: {}", welcome_.rank, error.what()));
  }
}

void Attachment::follow_groups() {
  if (!beginning_.online_stream) return;
  follow(*beginning_.online_stream, "online", [this](const IdSet& ranks) { set_online(ranks); });
  follow(*beginning_.torpid_stream, "torpid", [this](const IdSet& ranks) { set_torpid(ranks); });
}

/// Follows a group. Ignores an answer that cannot be read, so that the last readable one remains valid.
void Attachment::follow(std::uint32_t stream, std::string_view group, std::function<void(const IdSet&)> set) {
  broker_.expect(stream, [this, group, set = std::move(set)](const Message& answer) {
    try {
      if (answer.errnum() != 0) throw proto::response_error(answer);
      set(members(answer));
    } catch (const std::exception& error) {
      channel_.log(Severity::critical, fmt::format("monitor: broker.{}: {}", group, error.what()));
    }
  });
}

void Attachment::set_expiration(WallTime expiration) {
  try {
    service_.take(engine::SetExpiration{{expiration, true}}, "enclosing instance");
  } catch (const Error& error) {
    channel_.log_error(fmt::format("the expiration of the job cannot be used: {}", error.what()));
  }
}

void Attachment::set_online(const IdSet& online) {
  module::MonitorCommand command;
  command.offline = module().online() - online;
  command.online = online - module().online();
  command.torpid = torpid_ & command.online;
  observe(std::move(command));
}

void Attachment::set_torpid(IdSet torpid) {
  torpid_ = std::move(torpid);
  module::MonitorCommand command;
  command.torpid = (torpid_ & module().online()) - module().torpid();
  command.lively = module().torpid() - torpid_;
  observe(std::move(command));
}

void Attachment::observe(module::MonitorCommand command) {
  if (command.empty()) return;
  try {
    service_.take(module::Command(std::move(command)), "monitor");
  } catch (const Error& error) {
    channel_.log_error(fmt::format("monitor: {}", error.what()));
  }
}

void Attachment::reduce(const Message& report) {
  if (reduction_.take(report, channel_)) finish_reduction();
}

void Attachment::finish_reduction() {
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

void Attachment::add_topics() {
  using flux::module::Right;
  duties_.add("topo-get", Right::user,
              [this](const Message& request) { channel_.respond(request, topology_); });
  duties_.add("topo-reduce", Right::owner, [this](const Message& request) { reduce(request); });
  const auto reconfigure = [this](const Message& request) {
    // The other settings take effect when the module is loaded again.
    const auto settings =
        flux::module::read_settings(proto::parse_object(request, most_values), welcome_.rank, welcome_.hosts);
    owner_.set_journal_max(settings.journal_max);
    channel_.respond(request);
  };
  duties_.add("config-reload", Right::owner, reconfigure);
  duties_.add("config-update", Right::owner, reconfigure);
  duties_.add("sched-status", Right::user, [this](const Message& request) {
    // The service refuses the request before R is known.
    if (!module().defined()) return transport_.take(request);
    jobs_.ask(request);
  });
}

void Attachment::take(Channel::Received received) {
  Message& message = received.message;
  if (stopping_) return;
  if (message.type == proto::MessageType::event || duties_.serves(message.topic)) {
    if (!duties_.take(message)) shut_down();
    return;
  }
  if (proto::is_disconnect(message.topic)) jobs_.forget(message);
  // The instance's scheduler takes precedence over others: without resources it would end, and the instance
  // with it.
  const bool is_owner = (message.rolemask & proto::role::owner) != 0;
  if (message.topic == acquire_topic && is_owner && received.mark.empty()) end_schedulers(taken);
  transport_.take(std::move(message), received.mark);
}

void Attachment::load(const ResourceSet& resources, bool force, const std::optional<module::Actor>& by) {
  if (resources.ranks().last() >= welcome_.size) {
    // This is Flux's text, with its misspelling.
    if (!force) {
      throw Error(EINVAL, fmt::format("resource object contains ranks execeeding size={} (override with -f))",
                                      welcome_.size));
    }
    channel_.log_error(fmt::format("WARN: resource object contains ranks exceeding size={}", welcome_.size));
  }
  define(DefineMethod::reload, resources, by);
}

}  // namespace resourced::daemon::instance
