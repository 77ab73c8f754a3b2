// Makes a daemon with its own store the resource module of a Flux instance: the instance attaches, detaches
// and attaches again, while the daemon serves its other clients. The store has the state; the KVS gets a copy
// for the readers of the instance.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/module/command.hpp"
#include "core/rset/resource_set.hpp"
#include "daemon/instance/attach_socket.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/service/service.hpp"
#include "daemon/transport/transport.hpp"
#include "flux/link/attach.hpp"
#include "os/thread.hpp"

namespace resourced::daemon::instance {

class Host {
 public:
  /// Makes a host; `ids` are those of the daemon's transports. `changed` is called when an instance has
  /// attached or detached.
  Host(boost::asio::io_context& loop, service::Service& service, transport::ClientIds& ids,
       const config::Flux& settings, std::function<void()> changed);
  /// Destruction waits for a thread that is reading the inputs of an instance.
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  Host(Host&&) = delete;
  Host& operator=(Host&&) = delete;

  [[nodiscard]] bool is_attached() const noexcept { return guest_ != nullptr; }
  /// Whether keepers find the socket.
  [[nodiscard]] bool is_reachable() const noexcept { return socket_.is_reachable(); }
  /// Begins with the state of the store, if an instance was attached before.
  void begin(module::State state);
  /// Call when the log has got this record.
  void copy(const log::Record& record);
  /// Call when the store has this event and all before it on disk.
  void on_committed(log::Sequence last);
  /// Replaces R (resource.reload). Throws Error EAGAIN if no instance is attached, and as Attachment::load().
  void load(const rset::ResourceSet& resources, bool force, const std::optional<module::Actor>& by);
  /// Ends the connection to the instance, whose keeper attaches to the next daemon, without an effect on its
  /// clients.
  void stop();

 private:
  struct Guest;

  [[nodiscard]] std::string take(::resourced::flux::link::Attachment attachment);
  void settle(const std::shared_ptr<Guest>& guest);
  void serve(Guest& guest);
  void refuse(Guest& guest, const Error& error);
  void fail(const Error& error);
  /// Handles the end of the instance.
  void leave();
  void take_back_lost();
  void let_go();

  boost::asio::io_context& loop_;
  service::Service& service_;
  transport::ClientIds& ids_;
  std::function<void()> changed_;
  log::Sequence committed_ = 0;
  /// The state of the store from before the first instance; empty once there was one.
  module::State earlier_;
  std::shared_ptr<Guest> guest_;
  /// The thread that reads the inputs of the guest.
  std::optional<os::Worker> reader_;
  AttachSocket socket_;
};

}  // namespace resourced::daemon::instance
