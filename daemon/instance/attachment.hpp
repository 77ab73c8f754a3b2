// Makes a service the resource module of a Flux instance on rank 0, over the link of its keeper: the module's
// duties, the liveness of the brokers, and the requests of the instance's clients.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json_fwd.hpp>

#include "core/module/module.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/instance/beginning.hpp"
#include "daemon/instance/broker.hpp"
#include "daemon/instance/channel_transport.hpp"
#include "daemon/instance/job_inquiry.hpp"
#include "daemon/instance/kvs_log.hpp"
#include "daemon/service/service.hpp"
#include "daemon/transport/transport.hpp"
#include "flux/module/channel.hpp"
#include "flux/module/duties.hpp"
#include "flux/module/reduction.hpp"
#include "flux/module/welcome.hpp"

namespace resourced::daemon::instance {

class Attachment {
 public:
  using Channel = ::resourced::flux::module::Channel;
  using Welcome = ::resourced::flux::module::Welcome;

  /// The owner of the service, and of the log that keeps its events in the KVS.
  struct Owner {
    /// Commits changes to the KVS, in order with those of events.
    std::function<void(std::vector<KvsChange>)> change;
    std::function<void(std::size_t)> set_journal_max;
    /// Commits the remaining changes, and a last one if given. Calls the function once all is committed.
    std::function<void(std::optional<KvsChange>, std::function<void()>)> finish;
    /// Called once, from the loop, when the module has ended, or its keeper is gone.
    std::function<void()> over;
    /// Whether the service's log keeps all events, not only those that the KVS has.
    bool keeps_all = false;
  };
  /// Makes an attachment, which all arguments must outlive. It does nothing before begin().
  Attachment(boost::asio::io_context& loop, Channel& channel, const Welcome& welcome, Beginning beginning,
             service::Service& service, transport::ClientIds& ids, Owner owner);

  /// Starts the instance in the engine, and takes its messages from here on. Throws Error with the texts of
  /// Flux, with nothing changed, if the module cannot be loaded with its inputs.
  void begin();
  /// Returns the callbacks of the log that keeps events in the KVS: `post` runs a function on the loop,
  /// `committed` is called when events are durable, and `failed` when a commit was refused.
  [[nodiscard]] KvsLog::Callbacks log_callbacks(std::function<void(std::function<void()>)> post,
                                                std::function<void(log::Sequence)> committed,
                                                std::function<void(const Error&)> failed);
  /// Writes the present state to the KVS, which may differ from it.
  void copy_state();
  /// Call when the log has this event and all before it. Returns whether the start is complete with them.
  bool on_committed(log::Sequence last);
  /// Replaces R (resource.reload). Throws Error.
  void load(const rset::ResourceSet& resources, bool force, const std::optional<module::Actor>& by);
  /// Takes no more messages: the clients of the instance are gone, and no callback is called any more.
  void end();

 private:
  [[nodiscard]] const module::Module& module() const { return service_.engine().module(); }
  [[nodiscard]] text::Hostlist hosts() const;
  void commit(const nlohmann::json& request, std::function<void(const Error*)> done);
  /// Reports to the broker that the module cannot continue. If it was running, the keeper restarts the
  /// service.
  void fail(const Error& error);
  [[nodiscard]] KvsChange checkpoint() const;
  void report_kept();
  void recall();
  [[nodiscard]] bool is_known(const rset::ResourceSet& resources) const;
  void begin_brokers();
  void define_found();
  void define(module::DefineMethod method, rset::ResourceSet resources,
              const std::optional<module::Actor>& by = std::nullopt);
  void end_schedulers(std::string_view why);
  void verify();
  void follow_groups();
  void follow(std::uint32_t stream, std::string_view group, std::function<void(const text::IdSet&)> set);
  void set_expiration(WallTime expiration);
  void set_online(const text::IdSet& online);
  void set_torpid(text::IdSet torpid);
  void observe(module::MonitorCommand command);
  void reduce(const proto::Message& report);
  void finish_reduction();
  void add_topics();
  void take(Channel::Received received);
  void resume(proto::ClientId client, const proto::Message& request,
              const service::Service::Position& position);
  void shut_down();
  void finish_end();

  boost::asio::io_context& loop_;
  Channel& channel_;
  const Welcome& welcome_;
  Beginning beginning_;
  service::Service& service_;
  Owner owner_;
  Broker broker_;
  ChannelTransport transport_;
  ::resourced::flux::module::Duties duties_;
  text::IdSet exclude_;
  /// The ranks that are torpid according to the brokers, online or not.
  text::IdSet torpid_;
  ::resourced::flux::module::Reduction reduction_;
  JobInquiry jobs_;
  proto::Payload topology_;
  /// Whether the service has served an instance with the same brokers before.
  bool has_same_brokers_ = false;
  /// The last event of the start.
  log::Sequence start_ = 0;
  bool is_running_ = false;
  bool stopping_ = false;
  bool is_over_ = false;
};

}  // namespace resourced::daemon::instance
