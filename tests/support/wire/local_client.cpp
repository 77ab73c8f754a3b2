#include "wire/local_client.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include <sys/socket.h>

namespace resourced::wire {

LocalClient::LocalClient(const std::filesystem::path& socket) : socket_("local://" + socket.string()) {
  welcome_ = static_cast<std::uint8_t>(socket_.read(1)[0]);
}

void LocalClient::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::system_error(errno, std::generic_category(), "send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Parts LocalClient::receive(const Deadline& deadline) {
  const std::size_t size = frame_size(socket_.read(frame_header_size, deadline));
  return split_frame(socket_.read(size, deadline));
}

std::uint32_t LocalClient::request(std::string_view topic, const nlohmann::json& payload,
                                   std::uint8_t flags) {
  const auto text = payload.is_null() ? std::nullopt : std::optional(payload_of(payload));
  send(local_frame(request_parts(topic, ++last_matchtag_, text, flags)));
  return last_matchtag_;
}

RawResponse LocalClient::response(const Deadline& deadline) { return take_apart(receive(deadline)); }

RawResponse LocalClient::call(std::string_view topic, const nlohmann::json& payload) {
  const std::uint32_t matchtag = request(topic, payload);
  RawResponse answer = response();
  if (answer.matchtag != matchtag) throw std::runtime_error("an answer to another request");
  return answer;
}

}  // namespace resourced::wire
