// Follows resource.journal, and goes on after the last event it got when the connection was lost, the daemon
// has ended, or it fell behind: each event comes once.
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
    /// A response: its events, an array, empty at the end of the history, and the number of the last one.
    std::function<void(const nlohmann::json& events, std::optional<proto::topics::EventNumber> last)> events;
    /// The journal has ended for good. May throw.
    std::function<void(const client::Response& response)> ended;
    /// Called with the reason when the journal is lost, and with nothing when it comes again. May be null.
    std::function<void(const std::optional<Error>& loss)> changed = nullptr;
  };

  /// `connection` must outlive this. Without `reconnects` every end is for good. So it is for a journal whose
  /// events have no numbers.
  JournalFollower(client::Connection& connection, bool reconnects, Callbacks callbacks);
  ~JournalFollower();
  JournalFollower(const JournalFollower&) = delete;
  JournalFollower& operator=(const JournalFollower&) = delete;
  JournalFollower(JournalFollower&&) = delete;
  JournalFollower& operator=(JournalFollower&&) = delete;

  /// Sends this request in the place of an earlier one. May be called from the callbacks.
  void ask(const proto::topics::JournalRequest& request);

 private:
  void send(bool waits);
  void receive(const client::Response& response);
  void end();

  client::Connection& connection_;
  bool reconnects_;
  Callbacks callbacks_;
  proto::topics::JournalRequest wanted_;
  /// `wanted_.after` is that of a response, or of an earlier run: the journal can go on there.
  bool has_last_ = false;
  /// A response has come.
  bool has_begun_ = false;
  bool is_lost_ = false;
  std::optional<client::Connection::RequestId> request_;
  std::optional<client::Connection::TimerId> timer_;
  client::Backoff pause_;
};

}  // namespace resourced::cli::commands
