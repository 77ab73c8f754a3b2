// One attempt to reach the daemon, and the connection that it makes: for local: addresses a Unix socket
// (local_link.cpp), for others a DEALER socket and its monitor, which reports what happens to the connection.
// A socket is never used for a second connection, so that no message of one can be taken for one of the next.
// ZMQ_IMMEDIATE is not set, as it drops messages that were received but not read when the connection ended,
// such as the daemon's last responses. Instead, the caller waits for Event::connected before it sends.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/connection.hpp"
#include "client/reachability.hpp"
#include "client/wakeup.hpp"
#include "proto/key_file.hpp"
#include "proto/message.hpp"

namespace resourced::client {

class Link {
 public:
  /// Events of a link. No event follows failed or lost.
  enum class Event { connected, failed, lost };

  /// The ZeroMQ context that links are made in, with its input/output thread. Ends when it is destroyed,
  /// which waits for messages on their way out as long as their link's linger time allows.
  class Context;
  struct ContextDeleter {
    void operator()(Context* context) const noexcept;
  };
  using ContextPtr = std::unique_ptr<Context, ContextDeleter>;
  [[nodiscard]] static ContextPtr make_context();

  /// Whether a local: link waits for up to 250 ms while the daemon's socket has a full backlog, or fails.
  enum class Backlog { wait, refuse };

  /// Starts to connect, with CURVE if there are keys. Adds the sockets to `wakeup`. The options must have the
  /// times of heartbeats. Throws Error for a URI that ZeroMQ refuses, or if there are no descriptors left.
  Link(Context& context, const std::string& uri, const ConnectionOptions& options,
       const std::optional<proto::KeyFile>& keys, Wakeup& wakeup, Backlog backlog = Backlog::wait);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// False if there is no room now; a later call may succeed.
  [[nodiscard]] bool send(const proto::Message& message);
  /// The next message, if there is one. Messages that do not parse are dropped.
  [[nodiscard]] std::optional<proto::Message> receive();
  /// The next event, if there is one. Messages from before it can be received by then.
  [[nodiscard]] std::optional<Event> next_event();
  /// The cause of Event::failed, as far as the transport reports it.
  [[nodiscard]] ConnectFailure failure() const noexcept;
  /// True if receive() or next_event() has something, or, if `to_send`, send() has room. Must be the last
  /// call before the caller waits for the descriptors.
  [[nodiscard]] bool ready(bool to_send);

  /// Whether the end of a daemon that does not close the connection is an event.
  [[nodiscard]] bool has_heartbeats() const noexcept { return has_heartbeats_; }

  /// How long messages that were sent may take to leave after the link is destroyed. Zero unless set.
  void set_linger(Milliseconds time);

  class Impl;

 private:
  class ZmqImpl;
  bool has_heartbeats_;
  std::unique_ptr<Impl> impl_;
};

/// A transport behind the functions of a Link.
class Link::Impl {
 public:
  virtual ~Impl();
  [[nodiscard]] virtual bool send(const proto::Message& message) = 0;
  [[nodiscard]] virtual std::optional<proto::Message> receive() = 0;
  [[nodiscard]] virtual std::optional<Event> next_event() = 0;
  [[nodiscard]] virtual ConnectFailure failure() const noexcept = 0;
  [[nodiscard]] virtual bool ready(bool to_send) = 0;
  virtual void set_linger(Milliseconds time) = 0;
};

/// A link over a Unix stream socket, as Flux's local connector speaks it (framing: proto/local_frame.hpp):
/// the transport for users whom the ZeroMQ socket does not admit. The kernel identifies this client to the
/// daemon, and the daemon bounds frames. Starts to connect to a `local://PATH`. Throws Error if there are no
/// descriptors left; an address that cannot be reached is an event of the link.
[[nodiscard]] std::unique_ptr<Link::Impl> make_local_link(const std::string& uri,
                                                          const ConnectionOptions& options, Wakeup& wakeup,
                                                          Link::Backlog backlog);

}  // namespace resourced::client
