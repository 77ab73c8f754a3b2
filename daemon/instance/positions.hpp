// The positions of the streams that are sent through the channel, as the marks that the keeper stores: a
// process that takes the place of this one continues them there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/idset.hpp"
#include "core/time.hpp"
#include "daemon/service/service.hpp"
#include "daemon/streams/position.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::instance {

class Positions {
 public:
  /// `keeps_all`: the log of the service keeps all events, not only those that the KVS has.
  explicit Positions(bool keeps_all) : keeps_all_(keeps_all) {}

  /// The resources that a scheduler has acquired, as its first response leaves.
  struct Resources {
    text::IdSet acquirable;
    WallTime expiration{};
    module::PropertyChanges properties = {};
  };

  /// The mark of a response, empty if it is not one of a stream that goes on.
  [[nodiscard]] std::string after(proto::ClientId client, const proto::Message& response,
                                  const std::function<Resources()>& resources);
  /// Records that a stream continues at a position.
  void begin(proto::RequestKey key, const service::Service::Position& position) { streams_[key] = position; }
  /// Records that all schedulers are muted: returns the marks of their streams. None for one whose first
  /// response has not left.
  [[nodiscard]] std::vector<std::pair<proto::RequestKey, std::string>> mute();
  /// Forgets the streams of a client.
  void forget(proto::ClientId client);

 private:
  bool keeps_all_;
  std::map<proto::RequestKey, service::Service::Position> streams_;
};

/// A mark is one JSON object.
[[nodiscard]] std::string encode_position(const service::Service::Position& position);
/// Throws Error EPROTO.
[[nodiscard]] service::Service::Position parse_position(std::string_view mark);

}  // namespace resourced::daemon::instance
