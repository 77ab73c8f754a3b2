#include "daemon/transport/peer_address.hpp"

#include <charconv>
#include <system_error>

namespace resourced::daemon::transport {
namespace {

// Takes `:NUMBER` off the front.
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

}  // namespace resourced::daemon::transport
