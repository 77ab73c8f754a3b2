// The positions of the streams in the channel, as the marks that the keeper stores: a process that replaces
// this one continues them there.
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
  /// Starts without streams; `keeps_all` means that the log of the service keeps all events, not only those
  /// that the KVS has.
  explicit Positions(bool keeps_all) : keeps_all_(keeps_all) {}

  /// The resources that a scheduler has acquired, at the time of its first response.
  struct Resources {
    text::IdSet acquirable;
    WallTime expiration{};
    module::PropertyChanges properties = {};
  };

  /// Returns the mark of a response, empty if its stream does not continue.
  [[nodiscard]] std::string after(proto::ClientId client, const proto::Message& response,
                                  const std::function<Resources()>& resources);
  /// Records that a stream continues at a position.
  void begin(proto::RequestKey key, const service::Service::Position& position) { streams_[key] = position; }
  /// Records that all schedulers are muted, and returns the marks of their streams, except of one whose first
  /// response was not sent yet.
  [[nodiscard]] std::vector<std::pair<proto::RequestKey, std::string>> mute();
  /// Forgets the streams of a client.
  void forget(proto::ClientId client);

 private:
  bool keeps_all_;
  std::map<proto::RequestKey, service::Service::Position> streams_;
};

/// Encodes a position as a mark, one JSON object.
[[nodiscard]] std::string encode_position(const service::Service::Position& position);
/// Decodes a mark. Throws Error EPROTO.
[[nodiscard]] service::Service::Position parse_position(std::string_view mark);

}  // namespace resourced::daemon::instance
