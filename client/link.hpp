// One attempt to reach the daemon and the connection that comes of it: for local: addresses a Unix socket
// (local_link.cpp), for others a DEALER socket that is never used for a second one, so that no message of one
// connection can be taken for one of the next, and the monitor that says what becomes of it. ZMQ_IMMEDIATE is
// not set: with it, a connection that ends drops the messages that it received and that were not read yet,
// such as the daemon's last responses. The caller waits for Event::connected before it sends instead.
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

  /// Starts to connect, with CURVE if there are keys. `wakeup` gets to watch the sockets. Throws Error for a
  /// URI that ZeroMQ refuses, or where there are no descriptors left.
  Link(Context& context, const std::string& uri, const ConnectionOptions& options,
       const std::optional<proto::KeyFile>& keys, Wakeup& wakeup);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// False if there is no room now; a later try may do.
  [[nodiscard]] bool send(const proto::Message& message);
  /// The next message, if one is there. What does not parse is dropped.
  [[nodiscard]] std::optional<proto::Message> receive();
  /// The next event, if there is one. Messages that came before it are there by then.
  [[nodiscard]] std::optional<Event> next_event();
  /// After Event::failed: as far as the transport says why.
  [[nodiscard]] ConnectFailure failure() const noexcept;
  /// True if receive() or next_event() has something, or, if asked for, send() has room. Must be asked last,
  /// after anything else here, before the descriptors are waited for.
  [[nodiscard]] bool ready(bool to_send);

  /// How long what was sent may take to leave after the link is destroyed. Zero unless set.
  void set_linger(Milliseconds time);

  class Impl;

 private:
  class ZmqImpl;
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
/// the transport for users whom the ZeroMQ socket does not admit. The kernel tells the daemon who this client
/// is, and the daemon bounds frames. Starts to connect to a `local://PATH`. Throws Error if there are no
/// descriptors left; an address that cannot be reached is an event of the link.
[[nodiscard]] std::unique_ptr<Link::Impl> make_local_link(const std::string& uri,
                                                          const ConnectionOptions& options, Wakeup& wakeup);

}  // namespace resourced::client
