// Everything that leaves the daemon passes here, in order, and waits until the events that it tells of are on
// disk: nobody reads what a crash could take back.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/module/delta.hpp"
#include "daemon/store/record.hpp"
#include "daemon/transport/transport.hpp"

namespace resourced::daemon::streams {

/// A response to one request.
struct Response {
  proto::ClientId to{};
  proto::Message message;
};

/// A change for one holder of resources.
struct Update {
  engine::HolderId holder = 0;
  Delta delta;
};

using Outgoing = std::variant<Response, Update>;

class Outbox {
 public:
  /// `deliver` is called for each thing that may leave, in order.
  explicit Outbox(std::function<void(Outgoing)> deliver) : deliver_(std::move(deliver)) {}

  /// Lets something leave as soon as this event and all before it are on disk: now, if they are.
  void push(store::Sequence after, Outgoing outgoing);

  /// All events up to this one are on disk.
  void committed(store::Sequence last);

  /// Takes out everything that waits, as the events before it will not be on disk any more.
  [[nodiscard]] std::vector<Outgoing> abandon();

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  std::function<void(Outgoing)> deliver_;
  std::deque<std::pair<store::Sequence, Outgoing>> waiting_;
  store::Sequence committed_ = 0;
};

}  // namespace resourced::daemon::streams
