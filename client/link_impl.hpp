// The interface that each transport of a Link implements. link.hpp describes the functions.
#pragma once

#include <optional>

#include "client/link.hpp"

namespace resourced::client {

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

}  // namespace resourced::client
