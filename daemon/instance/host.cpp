#include "daemon/instance/host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "core/text/hostlist.hpp"
#include "daemon/instance/attachment.hpp"
#include "daemon/instance/beginning.hpp"
#include "daemon/instance/kept_state.hpp"
#include "daemon/instance/kvs_log.hpp"
#include "daemon/transport/loop_hold.hpp"
#include "flux/module/channel.hpp"
#include "flux/module/welcome.hpp"
#include "os/log.hpp"
#include "os/loop.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace flux = ::resourced::flux;

using nlohmann::json;

namespace {

/// Number of events that the KVS log keeps: it needs none, because the journal has the events of the store.
constexpr std::size_t no_history = 1;

/// Refuses an instance inside another one with Error EINVAL: it has resources of its own, which would replace
/// those of the daemon.
void check_level(const flux::module::Welcome& welcome) {
  const auto level = welcome.attributes.find("instance-level");
  if (level == welcome.attributes.end() || level->second == "0") return;
  throw Error(EINVAL, fmt::format("an instance of level {} cannot attach to a daemon that runs already; only "
                                  "the one of level 0 can",
                                  level->second));
}

/// Returns the hosts of drains, of which only the first are named.
std::string hosts_of(const std::vector<module::RecordedDrain>& drains) {
  constexpr std::size_t most_named = 64;
  text::Hostlist hosts;
  for (std::size_t i = 0; i < std::min(most_named, drains.size()); ++i) hosts.append(drains[i].target.host);
  hosts.unique();
  std::string text = hosts.encode();
  if (drains.size() > most_named) text += fmt::format(" and {} more", drains.size() - most_named);
  return text;
}

/// Warns about scheduled drains and ends: while an instance is served, drains begin at once and have no end.
void warn_of_times(module::AbsentStates recorded) {
  std::erase_if(recorded.drains, [](const module::RecordedDrain& drain) { return !drain.until; });
  std::string text;
  if (!recorded.drains.empty()) text = fmt::format("the drains of {} do not end", hosts_of(recorded.drains));
  if (!recorded.scheduled.empty()) {
    text += fmt::format("{}the scheduled drains of {} do not begin", text.empty() ? "" : ", and ",
                        hosts_of(recorded.scheduled));
  }
  if (!text.empty()) os::log_warning("in a Flux instance {} by themselves", text);
}

}  // namespace

/// The instance that is attached, or attaching.
struct Host::Guest {
  explicit Guest(flux::link::Attachment passed)
      : link(passed.link.release()),
        welcome_file(std::move(passed.welcome)),
        generation(passed.generation),
        is_first(passed.is_first) {}
  ~Guest() {
    if (!channel) ::close(link);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  Guest(Guest&&) = delete;
  Guest& operator=(Guest&&) = delete;

  /// Reads the inputs of the instance, on a separate thread, because it waits for the answers of the broker's
  /// modules.
  void read() {
    try {
      welcome = flux::module::read_welcome(welcome_file.get());
      channel.emplace(link, generation, welcome.rank, is_first);
      check_level(welcome);
      beginning = read_beginning(*channel, welcome, os::wall_clock());
    } catch (const Error& error) {
      failure = error;
    } catch (const std::exception& error) {
      failure = Error(EPROTO, error.what());
    }
  }

  /// The socket of the link, which the channel owns once there is one.
  int link;
  os::Descriptor welcome_file;
  std::uint8_t generation;
  bool is_first;
  flux::module::Welcome welcome;
  std::optional<flux::module::Channel> channel;
  std::optional<Beginning> beginning;
  std::optional<Error> failure;
  std::optional<KvsLog> kvs;
  std::optional<Attachment> attachment;
  /// Whether the KVS has the state as of the attachment.
  bool is_copied = false;
  /// A function to call after the last commit to the KVS, once the store has this event, too.
  std::optional<std::pair<log::Sequence, std::function<void()>>> finished;
};

Host::Host(asio::io_context& loop, service::Service& service, transport::ClientIds& ids,
           const config::Flux& settings, std::function<void()> changed)
    : loop_(loop),
      service_(service),
      ids_(ids),
      changed_(std::move(changed)),
      socket_(loop, settings.socket,
              {[owner = settings.user](std::uint32_t userid) {
                 return userid == 0 || userid == ::geteuid() || userid == owner;
               },
               [this](flux::link::Attachment attachment) { return take(std::move(attachment)); }}) {}

Host::~Host() {
  if (guest_) ::shutdown(guest_->link, SHUT_RDWR);
  reader_.reset();
}

void Host::begin(module::State state) {
  warn_of_times(state.by_name());
  if (!state.has_brokers()) {
    earlier_ = std::move(state);
    return;
  }
  auto definition = module::recall_definition(state);
  const text::Hostlist brokers = state.brokers;
  service_.step(engine::Start{.state = std::move(state), .brokers = engine::Brokers{brokers, {}}});
  if (definition) service_.step(*std::move(definition));
  service_.on_defined();
}

std::string Host::take(flux::link::Attachment attachment) {
  if (guest_ || reader_) return "this daemon serves an instance already";
  auto guest = std::make_shared<Guest>(std::move(attachment));
  reader_.emplace();
  reader_->run([this, guest] {
    guest->read();
    asio::post(loop_, [this, guest] { settle(guest); });
  });
  guest_ = guest;
  return {};
}

void Host::settle(const std::shared_ptr<Guest>& guest) {
  const transport::LoopHold hold(&service_.holds(), "attaching");
  reader_.reset();
  if (guest != guest_) return;
  // From here on the loop does not wait for the keeper.
  if (guest->channel) guest->channel->stop_waiting([] {});
  if (guest->failure) return refuse(*guest, *guest->failure);
  try {
    serve(*guest);
    earlier_ = {};
  } catch (const Error& error) {
    refuse(*guest, error);
  } catch (const std::exception& error) {
    refuse(*guest, Error(EPROTO, error.what()));
  }
}

void Host::refuse(Guest& guest, const Error& error) {
  os::log_error("cannot serve the Flux instance: {}", error.what());
  if (guest.channel) {
    guest.channel->log_error(error.what());
    guest.channel->failed(error.errnum());
  }
  let_go();
}

void Host::serve(Guest& guest) {
  // The drains from before the daemon served an instance are kept by this state, and take precedence over
  // those of the instance.
  guest.beginning->state = earlier_;
  // Make the log before the attachment takes the answers to its commits.
  guest.kvs.emplace(std::vector<KeptState::Line>{}, no_history, KvsLog::Predecessor{});
  guest.attachment.emplace(
      loop_, *guest.channel, guest.welcome, *std::move(guest.beginning), service_, ids_,
      Attachment::Owner{[&guest](std::vector<KvsChange> changes) { guest.kvs->change(std::move(changes)); },
                        // The length of the journal is that of the daemon's own configuration.
                        [](std::size_t /*most*/) {},
                        [this, &guest](std::optional<KvsChange> change, std::function<void()> done) {
                          guest.kvs->finish(std::move(change), [this, &guest, done = std::move(done)] {
                            const log::Sequence last = service_.engine().applied();
                            if (committed_ >= last) return done();
                            guest.finished = {last, done};
                          });
                        },
                        [this] { leave(); }, true});
  guest.kvs->begin(guest.attachment->log_callbacks(
      [this](std::function<void()> work) { asio::post(loop_, std::move(work)); },
      [this, &guest](log::Sequence /*last*/) {
        guest.is_copied = true;
        guest.attachment->on_committed(committed_);
      },
      [this](const Error& error) { fail(error); }));
  guest.attachment->begin();
  guest.attachment->copy_state();
  os::log_info("serving the Flux instance of {} brokers", guest.welcome.size);
  changed_();
}

void Host::copy(const log::Record& record) {
  if (guest_ && guest_->kvs) guest_->kvs->append(record);
}

void Host::on_committed(log::Sequence last) {
  committed_ = last;
  if (!guest_) return;
  if (guest_->is_copied) guest_->attachment->on_committed(last);
  if (guest_->finished && last >= guest_->finished->first) std::exchange(guest_->finished, {})->second();
}

void Host::load(const rset::ResourceSet& resources, bool force, const std::optional<module::Actor>& by) {
  if (!guest_ || !guest_->attachment) throw Error(EAGAIN, "no Flux instance is attached");
  guest_->attachment->load(resources, force, by);
}

// Detaches the instance: without its copy of the state, the KVS would mislead its readers. The keeper
// attaches again, and a new copy is made.
void Host::fail(const Error& error) {
  os::log_error("detaching the Flux instance: {}", error.what());
  leave();
}

void Host::leave() {
  let_go();
  os::log_info("the Flux instance has detached from this daemon");
  module::MonitorCommand command;
  command.offline = service_.engine().module().online();
  command.instance_left = true;
  if (!command.empty()) service_.take(module::Command(std::move(command)), "monitor");
  take_back_lost();
  changed_();
}

// Takes ranks back that were lost, such as all ranks at a clean end of an instance: they belong to the next
// instance.
void Host::take_back_lost() {
  const module::Module& module = service_.engine().module();
  if (!module.defined() || module.recorded_inventory().ranks() == module.inventory().ranks()) return;
  rset::ResourceSet resources = module.configured();
  resources.set_expiration(module.inventory().expiration());
  module::PropertyChanges changes = module.property_changes();
  service_.end_schedulers(
      Error(ESTALE, "the Flux instance has gone, and its resources have changed: acquire again"));
  service_.take(module::Command(module::DefineCommand{
                    module.method(), std::make_shared<const rset::ResourceSet>(std::move(resources)),
                    module.excluded(), std::move(changes.added), std::move(changes.removed)}),
                "monitor");
}

void Host::stop() {
  socket_.stop();
  if (guest_) let_go();
}

void Host::let_go() {
  const auto guest = std::exchange(guest_, nullptr);
  if (guest->attachment) guest->attachment->end();
  // End the wait of the reader, and inform the keeper.
  ::shutdown(guest->link, SHUT_RDWR);
  // Keep the guest until all work that was posted for it before has run.
  asio::post(loop_, [&loop = loop_, guest] { asio::post(loop, [guest] {}); });
}

}  // namespace resourced::daemon::instance
