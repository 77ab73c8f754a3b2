// A link is one attempt to reach the daemon, and the resulting connection: for local: addresses a Unix socket
// (local_link.cpp), for others a DEALER socket and its monitor, which reports the events of the connection.
// An attempt for a tcp: address tries all addresses of its host in turn (tcp_link.cpp). A socket is never
// used for a second connection, so that messages of two connections cannot be confused. ZMQ_IMMEDIATE is not
// set, as it drops messages that were received but not read when the connection ended, such as the daemon's
// last responses. Instead, the caller waits for Event::connected before it sends.
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

  /// The ZeroMQ context of links, with its input/output thread. Its destruction waits for messages on their
  /// way out as long as their link's linger time allows, but not for the look-up of a name.
  class Context;
  struct ContextDeleter {
    void operator()(Context* context) const noexcept;
  };
  using ContextPtr = std::unique_ptr<Context, ContextDeleter>;
  [[nodiscard]] static ContextPtr make_context();

  /// Starts to connect, with CURVE if there are keys. Adds the sockets to `wakeup`, and further attempts to
  /// `timers`. The options must have the times of heartbeats; they and the keys must outlive the link. Throws
  /// Error for a URI that ZeroMQ refuses, or if there are no descriptors left.
  Link(Context& context, const std::string& uri, const ConnectionOptions& options,
       const std::optional<proto::KeyFile>& keys, Wakeup& wakeup, Timers& timers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Sends a message. Returns false if there is no room now; a later call may succeed.
  [[nodiscard]] bool send(const proto::Message& message);
  /// Sends one of the last messages of the link. If there is no room, it waits for at most this time.
  [[nodiscard]] bool send_last(const proto::Message& message, Milliseconds longest);
  /// Returns the next message, if there is one. Messages that do not parse are dropped.
  [[nodiscard]] std::optional<proto::Message> receive();
  /// Returns the next event, if there is one. Messages from before the event can be received by then.
  [[nodiscard]] std::optional<Event> next_event();
  /// Returns the cause of Event::failed, as far as the transport reports it.
  [[nodiscard]] ConnectFailure failure() const noexcept;
  /// Whether receive() or next_event() has something, or, if `to_send`, send() has room. Must be the last
  /// call before the caller waits for the descriptors.
  [[nodiscard]] bool ready(bool to_send);

  /// Whether the link has heartbeats, by which it detects a daemon that ended without closing the connection.
  [[nodiscard]] bool has_heartbeats() const noexcept { return has_heartbeats_; }

  /// Sets how long sent messages may take to leave after the link is destroyed. Zero unless set.
  void set_linger(Milliseconds time);

  class Impl;

 private:
  bool has_heartbeats_;
  std::unique_ptr<Impl> impl_;
};

/// The interface of the transports of a Link.
class Link::Impl {
 public:
  virtual ~Impl();
  [[nodiscard]] virtual bool send(const proto::Message& message) = 0;
  [[nodiscard]] virtual bool send_last(const proto::Message& message, Milliseconds longest) = 0;
  [[nodiscard]] virtual std::optional<proto::Message> receive() = 0;
  [[nodiscard]] virtual std::optional<Event> next_event() = 0;
  [[nodiscard]] virtual ConnectFailure failure() const noexcept = 0;
  [[nodiscard]] virtual bool ready(bool to_send) = 0;
  virtual void set_linger(Milliseconds time) = 0;
};

/// Makes a link over ZeroMQ, to an ipc: URI or a tcp: one with a numeric host. It gives up after `longest`,
/// if given. Throws Error as Link().
[[nodiscard]] std::unique_ptr<Link::Impl> make_zmq_link(Link::Context& context, const std::string& uri,
                                                        const ConnectionOptions& options,
                                                        const std::optional<proto::KeyFile>& keys,
                                                        Wakeup& wakeup, std::optional<Milliseconds> longest);

/// Makes a link to a tcp: URI, over ZeroMQ. It ends at the first address whose daemon refuses this client,
/// and fails once all addresses have failed. Throws Error as Link().
[[nodiscard]] std::unique_ptr<Link::Impl> make_tcp_link(Link::Context& context, const std::string& uri,
                                                        const ConnectionOptions& options,
                                                        const std::optional<proto::KeyFile>& keys,
                                                        Wakeup& wakeup);

/// Makes a link over a Unix stream socket, as Flux's local connector uses it (framing:
/// proto/local_frame.hpp): the transport for users whom the ZeroMQ socket does not admit. The kernel
/// identifies this client to the daemon, and the daemon bounds frames. Starts to connect to a `local://PATH`,
/// and tries again by `timers` while the backlog of the daemon's socket is full. Throws Error if there are no
/// descriptors left; an address that cannot be reached is an event of the link.
[[nodiscard]] std::unique_ptr<Link::Impl> make_local_link(const std::string& uri,
                                                          const ConnectionOptions& options, Wakeup& wakeup,
                                                          Timers& timers);

}  // namespace resourced::client
