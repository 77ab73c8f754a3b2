// The transport for the broker's channel, which carries all senders of the instance. A sender is identified
// by the origin of its requests, the route that was pushed first, and its user. The broker vouches for the
// credentials in each message.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/instance/positions.hpp"
#include "daemon/transport/transport.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

class ChannelTransport final : public transport::Transport {
 public:
  struct Link {
    /// Sends a response, with the mark for the keeper (link::LinkMessage).
    std::function<void(const proto::Message&, const std::string& mark)> send;
    std::function<bool()> is_full;
    std::function<std::size_t()> unsent;
    /// Returns the resources of a scheduler whose first response is sent now.
    std::function<Positions::Resources()> resources;
    /// Returns whether nothing is pending for a client.
    std::function<bool(proto::ClientId)> is_idle;
    /// Takes the request of a stream that an earlier process has served.
    std::function<void(proto::ClientId, const proto::Message&, const service::Service::Position&)> resume;
    /// Whether the service's log keeps all events, for Positions.
    bool keeps_all = false;
  };
  /// Makes the transport; `owner` is the user of the instance.
  ChannelTransport(transport::ClientIds& ids, transport::Listener& listener, std::uint32_t owner, Link link);

  /// Takes a request from the broker, with `mark` from Channel::Received.
  void take(proto::Message request, const std::string& mark = {});
  /// Whether a disconnect ends the sender of `request`: it has the same origin, and comes from the same user
  /// or from the owner.
  [[nodiscard]] static bool may_disconnect(const proto::Message& disconnect, const proto::Message& request);
  void on_writable() { listener_.on_writable(); }
  /// Ends all clients, because their channel has ended.
  void end_all();

  [[nodiscard]] std::string endpoint() const override { return "flux"; }
  transport::SendResult send(proto::ClientId client, const proto::Message& message) override;
  void drop(proto::ClientId client) override;
  void stop_reading() override { reads_ = false; }
  [[nodiscard]] std::size_t unsent() const override { return link_.unsent(); }

 private:
  static constexpr std::size_t least_senders = 1024;

  /// Identifies a sender. The origin alone is not enough: a user chooses the first route of messages that a
  /// program sends for others.
  struct Name {
    std::string origin;
    std::uint32_t userid = proto::userid_unknown;
    /// Whether the sender's requests have the rolemask 0, which the responses to them must have, too.
    bool has_no_role = false;
    auto operator<=>(const Name&) const = default;
  };

  void disconnect(const proto::Message& request);
  void resume(proto::ClientId client, const proto::Message& request, const std::string& mark);
  /// Stores a mark at the keeper, without a response.
  void store(proto::RequestKey stream, const std::string& mark);
  /// Ends a client, and informs the listener.
  void end(proto::ClientId client);
  /// Forgets senders without pending requests, because the broker does not report the end of each.
  void sweep();
  [[nodiscard]] static std::string origin(const proto::Message& request);

  transport::ClientIds& ids_;
  transport::Listener& listener_;
  std::uint32_t owner_;
  Link link_;
  Positions positions_;
  bool reads_ = true;
  std::map<Name, proto::ClientId> senders_;
  std::unordered_map<proto::ClientId, Name> names_;
  std::size_t most_senders_ = least_senders;
};

}  // namespace resourced::daemon::instance
