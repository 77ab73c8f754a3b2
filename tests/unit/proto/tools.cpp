#include "tools.hpp"

#include <charconv>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace resourced::proto::test {

std::string from_hex(std::string_view hex) {
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') {
      digits.push_back(c);
    }
  }
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned value = 0;
    const auto [stop, error] = std::from_chars(&digits[i], &digits[i] + 2, value, 16);
    if (error != std::errc() || stop != &digits[i] + 2) {
      throw std::invalid_argument("not hexadecimal: " + digits.substr(i, 2));
    }
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(value)));
  }
  return bytes;
}

std::string describe(const Message& message) {
  auto text = fmt::format("type={} flags={:#04x} userid={:#x} rolemask={:#x} aux={:#x} matchtag={:#x}",
                          static_cast<int>(message.type), message.flags, message.userid, message.rolemask,
                          message.aux, message.matchtag);
  for (const auto& route : message.routes) {
    text += fmt::format(" route=\"{}\"", route);
  }
  text += fmt::format(" topic=\"{}\"", message.topic);
  return text + (message.payload ? fmt::format(" payload=\"{}\"", *message.payload) : " no payload");
}

Message parse(const std::vector<std::string>& parts) {
  const Parts views(parts.begin(), parts.end());
  return from_parts(views);
}

std::vector<std::string> parts_of(const Message& message) {
  const auto proto = encode_proto(message);
  const auto parts = to_parts(message, proto);
  return {parts.begin(), parts.end()};
}

std::vector<Recorded> recorded_frames() {
  std::ifstream file(RESOURCED_VECTORS "/wire.json");
  const auto vectors = nlohmann::json::parse(file);
  std::vector<Recorded> frames;
  for (const auto& entry : vectors.at("local_frames")) {
    frames.push_back({entry.at("command"), from_hex(entry.at("hex").get<std::string>()), entry.at("topic"),
                      entry.at("payload").is_null() ? "" : entry.at("payload").dump(), entry.at("flags"),
                      entry.at("nodeid"), entry.at("matchtag")});
  }
  return frames;
}

}  // namespace resourced::proto::test
