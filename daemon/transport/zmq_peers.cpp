#include "daemon/transport/zmq_peers.hpp"

#include <charconv>
#include <system_error>

namespace resourced::daemon::transport {

namespace {

// Removes `:NUMBER` from the front of a text, and returns the number.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
  if (!text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

}  // namespace

std::optional<IpcPeer> parse_ipc_peer(std::string_view peer_address) noexcept {
  const std::size_t colon = peer_address.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view rest = peer_address.substr(colon);
  const auto userid = take_number(rest);
  const auto groupid = userid ? take_number(rest) : std::nullopt;
  const auto process = groupid ? take_number(rest) : std::nullopt;
  if (!process || !rest.empty()) return std::nullopt;
  return IpcPeer{*userid, *groupid};
}

std::string_view plain_address(std::string_view address) noexcept {
  constexpr std::string_view mapped = "::ffff:";
  if (address.starts_with(mapped) && address.find('.') != std::string_view::npos)
    address.remove_prefix(mapped.size());
  return address;
}

void ZmqPeers::accepted(int descriptor) {
  Descriptor& state = descriptors_[descriptor];
  ++state.connection;
  state.open = true;
  state.unwanted = false;
  state.client.reset();
}

void ZmqPeers::refuse(int descriptor) {
  if (const auto found = descriptors_.find(descriptor); found != descriptors_.end())
    found->second.unwanted = true;
}

std::optional<ClientId> ZmqPeers::disconnected(int descriptor) {
  const auto found = descriptors_.find(descriptor);
  if (found == descriptors_.end() || !found->second.open) return std::nullopt;
  found->second.open = false;
  const auto client = found->second.client;
  found->second.client.reset();
  if (client) forget(*client);
  return client;
}

ZmqPeers::Arrival ZmqPeers::arrived(std::string_view identity, int descriptor) {
  Arrival arrival;
  const auto place = descriptors_.find(descriptor);
  if (place == descriptors_.end() || place->second.unwanted) {
    arrival.is_unwanted = true;
    return arrival;
  }
  Descriptor& state = place->second;
  if (const auto found = peers_.find(std::string(identity)); found != peers_.end()) {
    const Peer& peer = found->second;
    if (peer.descriptor == descriptor && peer.connection == state.connection) {
      arrival.client = peer.client;
      return arrival;
    }
    // The identity comes by another connection: the client has reconnected.
    arrival.replaced = peer.client;
    forget(peer.client);
  } else if (state.open && state.client) {
    // A late message of an earlier connection on the descriptor had bound this one to another identity.
    arrival.replaced = state.client;
    forget(*state.client);
  }
  arrival.client = add(identity, descriptor, state);
  arrival.is_new = true;
  arrival.is_gone = !state.open;
  if (state.open) state.client = arrival.client;
  return arrival;
}

ClientId ZmqPeers::add(std::string_view identity, int descriptor, const Descriptor& state) {
  const ClientId client = ids_.next();
  peers_.insert_or_assign(std::string(identity), Peer{client, descriptor, state.connection});
  identities_.emplace(client, identity);
  return client;
}

bool ZmqPeers::has_spoken(int descriptor) const {
  const auto found = descriptors_.find(descriptor);
  return found != descriptors_.end() && found->second.open && found->second.client.has_value();
}

const std::string* ZmqPeers::identity(ClientId client) const {
  const auto found = identities_.find(client);
  return found == identities_.end() ? nullptr : &found->second;
}

void ZmqPeers::forget(ClientId client) {
  const auto found = identities_.find(client);
  if (found == identities_.end()) return;
  const auto peer = peers_.find(found->second);
  if (const auto state = descriptors_.find(peer->second.descriptor);
      state != descriptors_.end() && state->second.client == client) {
    state->second.client.reset();
  }
  peers_.erase(peer);
  identities_.erase(found);
}

std::optional<int> ZmqPeers::drop(ClientId client) {
  const auto found = identities_.find(client);
  if (found == identities_.end()) return std::nullopt;
  const Peer peer = peers_.at(found->second);
  Descriptor& state = descriptors_.at(peer.descriptor);
  const bool is_its_own = state.client == client && state.connection == peer.connection;
  forget(client);
  if (!is_its_own) return std::nullopt;
  state.unwanted = true;
  return peer.descriptor;
}

}  // namespace resourced::daemon::transport
