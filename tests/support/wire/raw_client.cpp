#include "wire/raw_client.hpp"

#include <algorithm>
#include <utility>

namespace resourced::wire {

std::uint32_t RawClient::send_text(std::string_view topic, std::optional<std::string_view> payload,
                                   std::uint8_t flags) {
  const std::uint32_t matchtag = ++last_matchtag_;
  send_parts(
      request_parts(topic, matchtag, payload ? std::optional<std::string>(*payload) : std::nullopt, flags));
  return matchtag;
}

std::uint32_t RawClient::send(std::string_view topic, const nlohmann::json& payload, std::uint8_t flags) {
  return send_text(topic, payload_of(payload), flags);
}

RawResponse RawClient::receive_any(const Deadline& deadline) {
  const std::optional<Parts> parts = socket_.receive(deadline);
  if (!parts) throw Timeout("no response came");
  return take_apart(*parts);
}

RawResponse RawClient::receive(const Deadline& deadline) {
  if (kept_.empty()) return receive_any(deadline);
  RawResponse response = std::move(kept_.front());
  kept_.pop_front();
  return response;
}

RawResponse RawClient::receive(std::uint32_t matchtag, const Deadline& deadline) {
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const RawResponse& r) { return r.matchtag == matchtag; });
  if (kept != kept_.end()) {
    RawResponse response = std::move(*kept);
    kept_.erase(kept);
    return response;
  }
  while (true) {
    RawResponse response = receive_any(deadline);
    if (response.matchtag == matchtag) return response;
    kept_.push_back(std::move(response));
  }
}

std::vector<RawResponse> RawClient::settle() {
  // An answer about the state would not wait for the commit of changes. This one, a refusal, does.
  const std::uint32_t last = send_text("resource.wait", std::nullopt);
  std::vector<RawResponse> before;
  while (true) {
    RawResponse response = receive();
    if (response.matchtag == last) return before;
    before.push_back(std::move(response));
  }
}

RawResponse RawClient::call(std::string_view topic) { return receive(send_text(topic, std::nullopt)); }

RawResponse RawClient::call(std::string_view topic, const nlohmann::json& payload) {
  return receive(send(topic, payload));
}

}  // namespace resourced::wire
