#include "daemon/server.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <zmq.hpp>

#include "config/config.hpp"
#include "config/describe.hpp"
#include "config/inventory.hpp"
#include "daemon/log.hpp"
#include "daemon/service.hpp"
#include "daemon/service_manager.hpp"
#include "daemon/zmq_transport.hpp"
#include "proto/defaults.hpp"
#include "proto/uri.hpp"

namespace resourced::daemon {
namespace {

namespace asio = boost::asio;

double wall_clock() {
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<Seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

config::Config load_configuration(const Options& options) {
  return config::load(options.config.empty() ? default_configuration() : options.config);
}

std::string state_directory(const Options& options, const config::Config& config) {
  if (!options.state.empty()) return options.state;
  if (!config.store.directory.empty()) return config.store.directory;
  return proto::state_directory(environment);
}

std::vector<std::string> endpoints(const Options& options, const config::Config& config) {
  if (!options.listen.empty()) return options.listen;
  if (!config.bus.listen.empty()) return config.bus.listen;
  return {proto::default_bus_uri(environment)};
}

ZmqOptions zmq_options(const config::Bus& bus) {
  return {bus.send_hwm, bus.receive_hwm, bus.heartbeat_interval, bus.heartbeat_timeout, bus.max_message_size};
}

class Server {
 public:
  Server(const Options& options, const config::Config& config)
      : config_(config),
        store_(state_directory(options, config)),
        service_(store_, wall_clock, config::to_json(config).dump()),
        signals_(loop_, SIGTERM, SIGINT),
        watchdog_(loop_) {
    start_module();
    for (const std::string& uri : endpoints(options, config)) listen(uri);
  }

  ~Server() {
    // The store's thread posts to the loop, which must outlive it.
    store_.stop();
  }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  int run() {
    wait_for_signal();
    announce();
    loop_.run();
    return exit_status_;
  }

 private:
  void start_module() {
    const config::Inventory inventory = config::load_inventory(config_);
    StartCommand start;
    start.inventory = std::make_shared<const ResourceSet>(inventory.resources);
    start.exclude = inventory.exclude;
    start.online = inventory.resources.ranks();
    start.recorded = store_.load();
    store_.start({[this](Sequence last) { asio::post(loop_, [this, last] { service_.on_committed(last); }); },
                  [this](const Error& error) { asio::post(loop_, [this, error] { store_failed(error); }); }});
    service_.engine().start(start);
  }

  void listen(const std::string& uri) {
    const auto endpoint = proto::parse_endpoint(uri, proto::EndpointUse::listen);
    if (endpoint.scheme == proto::Scheme::ipc) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(endpoint.path).parent_path(), ignored);
    }
    transports_.push_back(
        make_zmq_transport(loop_, context_, endpoint.uri(), zmq_options(config_.bus), ids_, service_));
  }

  void announce() {
    const ResourceCounts counts = service_.engine().module().inventory().counts();
    const auto status =
        fmt::format("serving {} nodes, {} cores, {} gpus", counts.nodes, counts.cores, counts.gpus);
    spdlog::info("{}", status);
    for (const auto& transport : transports_) fmt::print("listening on {}\n", transport->endpoint());
    std::fflush(stdout);
    notify_ready(status);
  }

  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info("stopping on signal {}", number);
      stop();
    });
  }

  // What was decided is committed and answered, then the streams end, then the loop.
  void stop() {
    notify_stopping();
    for (const auto& transport : transports_) transport->stop_reading();
    service_.shut_down();
    store_.stop();
    asio::post(loop_, [this] { loop_.stop(); });
  }

  void store_failed(const Error& error) {
    spdlog::critical("the store failed, stopping: {}", error.what());
    for (const auto& transport : transports_) transport->stop_reading();
    service_.on_store_failed(error);
    exit_status_ = 1;
    loop_.stop();
  }

  const config::Config& config_;
  asio::io_context loop_{1};
  zmq::context_t context_;
  ClientIds ids_;
  Store store_;
  Service service_;
  std::vector<std::unique_ptr<Transport>> transports_;
  asio::signal_set signals_;
  Watchdog watchdog_;
  int exit_status_ = 0;
};

}  // namespace

int run(const Options& options) {
  const config::Config config = load_configuration(options);
  set_up_logging(options.log_level.value_or(config.log.level));
  return Server(options, config).run();
}

void check(const Options& options) {
  const config::Config config = load_configuration(options);
  if (!config.resource.has_inventory())
    throw config.fault("resource", "no path and no config: no inventory", ENOENT);
  const config::Inventory inventory = config::load_inventory(config);
  fmt::print("{}", config::describe(config, &inventory));
}

}  // namespace resourced::daemon
