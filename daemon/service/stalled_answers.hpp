// The answers that a leader can give while its log commits nothing, because etcd does not confirm a commit.
// Other answers wait in the outbox until the leader gives up; these leave at once. They reveal no event that
// is not committed: a read of the present state is answered from the store, as by a standby
// (proto/topics/logged_state.hpp).
#pragma once

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "daemon/log/event_log.hpp"
#include "daemon/peers/clients.hpp"
#include "daemon/streams/outbox.hpp"
#include "proto/message.hpp"
#include "proto/topics/logged_state.hpp"

namespace resourced::daemon::service {

class StalledAnswers {
 public:
  /// `metrics` makes the answer to resource.metrics without states of nodes. `gone` is called with clients
  /// that are found to be gone.
  StalledAnswers(streams::Outbox& outbox, peers::Clients& clients, log::EventLog& log,
                 std::function<proto::Payload()> metrics, std::function<void(proto::ClientId)> gone)
      : outbox_(outbox), clients_(clients), log_(log), metrics_(std::move(metrics)), gone_(std::move(gone)) {}

  [[nodiscard]] bool is_on() const noexcept { return is_on_; }
  /// Called when the log commits nothing: takes over responses in the outbox that need not wait for it.
  void begin();
  /// Called when the log commits again.
  void end() { is_on_ = false; }
  /// Sends a response, or its replacement, before those that wait. Returns false, and does nothing, for a
  /// response that has to wait.
  [[nodiscard]] bool take(proto::ClientId client, proto::Message& response);

 private:
  /// One kind of read. Its requests wait for the reading thread, which is asked once for all of them.
  struct Read {
    proto::Payload payload;
    /// The last event in the payload's state.
    log::Sequence sequence = 0;
    bool is_asked = false;
    std::vector<streams::Response> waiting;
  };

  void read(proto::topics::LogRead what, proto::ClientId client, proto::Message response);
  void ask(proto::topics::LogRead what);
  void on_read(Read& read, log::EventLog::Past past);
  void send(proto::ClientId client, proto::Message message);

  streams::Outbox& outbox_;
  peers::Clients& clients_;
  log::EventLog& log_;
  std::function<proto::Payload()> metrics_;
  std::function<void(proto::ClientId)> gone_;
  bool is_on_ = false;
  /// Reads by LogRead.
  std::array<Read, proto::topics::log_reads> reads_;
};

}  // namespace resourced::daemon::service
