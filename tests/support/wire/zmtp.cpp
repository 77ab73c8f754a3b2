#include "wire/zmtp.hpp"

namespace resourced::wire {

using namespace std::string_literals;

std::string zmtp_greeting() { return "\xFF\0\0\0\0\0\0\0\1\x7F\3\0NULL"s + std::string(48, '\0'); }

std::string zmtp_ready(const ZmtpProperties& properties) {
  std::string body = "\x05READY";
  for (const auto& [name, value] : properties) {
    body += static_cast<char>(name.size()) + name;
    body += "\0\0\0"s + static_cast<char>(value.size()) + value;
  }
  return "\x04"s + static_cast<char>(body.size()) + body;
}

std::string zmtp_hello() { return zmtp_greeting() + zmtp_ready({{"Socket-Type", "DEALER"}}); }

std::string zmtp_frame(std::string_view body) {
  return "\0"s + static_cast<char>(body.size()) + std::string(body);
}

void await_zmtp_hello(const RawSocket& socket) {
  socket.read(zmtp_greeting().size());
  constexpr std::size_t command_header = 2;
  socket.read(static_cast<unsigned char>(socket.read(command_header)[1]));
}

void shake_hands(const RawSocket& socket, const ZmtpProperties& properties) {
  socket.send(zmtp_greeting() + zmtp_ready(properties));
  await_zmtp_hello(socket);
}

}  // namespace resourced::wire
