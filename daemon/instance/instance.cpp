#include "daemon/instance/instance.hpp"

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "daemon/instance/attachment.hpp"
#include "daemon/instance/beginning.hpp"
#include "daemon/instance/kept_state.hpp"
#include "daemon/instance/kvs_log.hpp"
#include "daemon/service/service.hpp"
#include "flux/module/channel.hpp"
#include "flux/module/node.hpp"
#include "os/loop.hpp"
#include "os/memory.hpp"

namespace resourced::daemon::instance {

namespace asio = boost::asio;
namespace flux = ::resourced::flux;

using flux::module::Channel;
using nlohmann::json;
using os::wall_clock;
using rset::ResourceSet;

namespace {

/// The service as a separate process, with its log in the KVS.
class Instance final : private service::Program {
 public:
  Instance(Channel& channel, const flux::module::Welcome& welcome, Beginning beginning)
      : channel_(channel),
        log_(std::exchange(beginning.kept.history, {}), beginning.settings.journal_max,
             predecessor(channel, beginning)),
        service_(log_, *this,
                 {.configuration = "{}",
                  .journal_max = beginning.settings.journal_max,
                  .access = peers::Access({}, geteuid()),
                  .limits = {},
                  .read_topologies = flux::module::read_topologies}),
        timer_(loop_),
        attachment_(loop_, channel, welcome, std::move(beginning), service_, ids_,
                    {[this](std::vector<KvsChange> changes) { log_.change(std::move(changes)); },
                     [this](std::size_t most) {
                       log_.set_most(most);
                       service_.set_journal_max(most);
                     },
                     [this](std::optional<KvsChange> change, std::function<void()> done) {
                       log_.finish(std::move(change), std::move(done));
                     },
                     [this] { loop_.stop(); }}) {
    log_to_broker(loop_, channel_);
    start_log();
    attachment_.begin();
  }

  int run() {
    loop_.run();
    return exit_status_;
  }

 private:
  static KvsLog::Predecessor predecessor(const Channel& channel, const Beginning& beginning) {
    return {.has_readers = !channel.is_first(),
            .has_defined = !channel.is_first() && beginning.found && beginning.found->is_recorded};
  }

  [[nodiscard]] WallTime wall_now() const override { return wall_clock(); }
  [[nodiscard]] SteadyTime steady_now() const override { return os::steady_clock(); }
  void run_later(Seconds pause, std::function<void()> work) override {
    os::run_later(loop_, pause, std::move(work));
  }
  void wake_at(SteadyTime when) override {
    os::run_at(timer_, when, [this] { service_.on_time(); });
  }
  void reload(const By& /*by*/) override { throw Error(EPROTO, "resource.reload: path: missing"); }
  void load(const ResourceSet& resources, const std::string& /*path*/, bool force, const By& by) override {
    attachment_.load(resources, force, by);
  }

  void start_log() {
    log_.begin(attachment_.log_callbacks(
        [this](std::function<void()> work) {
          asio::post(loop_, [this, work = std::move(work)] {
            work();
            service_.on_answered();
          });
        },
        [this](log::Sequence last) {
          service_.on_committed(last);
          if (attachment_.on_committed(last)) {
            // Return the memory that the texts of the KVS took while they were read.
            os::give_back_memory();
          }
        },
        [this](const Error& error) { fail(error); }));
  }

  /// Call when the KVS has refused a commit: the pending requests get the error, and the keeper restarts this
  /// program.
  void fail(const Error& error) {
    service_.on_store_failed(error);
    exit_status_ = 1;
    loop_.stop();
  }

  Channel& channel_;
  // The loop is declared before the objects that use it.
  asio::io_context loop_{1};
  KvsLog log_;
  service::Service service_;
  transport::ClientIds ids_;
  asio::steady_timer timer_;
  Attachment attachment_;
  int exit_status_ = 0;
};

}  // namespace

int run() {
  const flux::module::Inherited inherited = flux::module::read_environment();
  flux::module::Welcome welcome;
  try {
    welcome = flux::module::read_welcome(inherited.welcome);
  } catch (const Error& error) {
    // The rank is 0, as this service runs there.
    Channel channel(inherited.link, inherited.generation, 0);
    channel.log_error(error.what());
    channel.failed(error.errnum());
    return 1;
  }
  Channel channel(inherited.link, inherited.generation, welcome.rank);
  std::optional<Instance> instance;
  try {
    instance.emplace(channel, welcome, read_beginning(channel, welcome, wall_clock()));
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
