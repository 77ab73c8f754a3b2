// Follows resource.journal. After a lost connection, the end of the daemon, or if it fell behind, it
// continues after the last received event, so each event is reported once.
#pragma once

#include <functional>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "client/backoff.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "proto/topics/journal.hpp"

namespace resourced::cli::commands {

class JournalFollower {
 public:
  struct Callbacks {
    /// Called with each response: its events, an array, empty at the end of the history, and the number of
    /// the last one.
    std::function<void(const nlohmann::json& events, std::optional<proto::topics::EventNumber> last)> events;
    /// Called when the journal has ended for good. May throw.
    std::function<void(const client::Response& response)> ended;
    /// Called with the reason when the journal is lost, and with nothing when it continues. May be null.
    std::function<void(const std::optional<Error>& loss)> changed = nullptr;
  };

  /// Makes a follower; `connection` must outlive it. Without `reconnects` every end is final, as it is for a
  /// journal whose events have no numbers.
  JournalFollower(client::Connection& connection, bool reconnects, Callbacks callbacks);
  ~JournalFollower();
  JournalFollower(const JournalFollower&) = delete;
  JournalFollower& operator=(const JournalFollower&) = delete;
  JournalFollower(JournalFollower&&) = delete;
  JournalFollower& operator=(JournalFollower&&) = delete;

  /// Sends this request instead of an earlier one. May be called from the callbacks.
  void ask(const proto::topics::JournalRequest& request);

 private:
  void send(bool waits);
  void receive(const client::Response& response);
  void end();

  client::Connection& connection_;
  bool reconnects_;
  Callbacks callbacks_;
  proto::topics::JournalRequest wanted_;
  /// Whether `wanted_.after` is from a response, or from an earlier run: the journal can continue there.
  bool has_last_ = false;
  /// Whether a response was received.
  bool has_begun_ = false;
  bool is_lost_ = false;
  std::optional<client::Connection::RequestId> request_;
  std::optional<client::Connection::TimerId> timer_;
  client::Backoff pause_;
};

}  // namespace resourced::cli::commands
