// Keeps a node online: says hello to the daemon with the node's name and R, beats as long as the daemon
// keeps the stream of the hello open, and says hello again, for ever, when the stream has ended or the
// daemon cannot be reached. Leaves input and output to the connection and the words it has for its operator
// to whoever writes them down.
//
// The hello is `resource.agent` {"hostname", "R", "norestrict"}, a streaming request; norestrict tells
// whether R has the cores that this process may not use, too. A daemon that wants it otherwise answers
// {"norestrict"} and ends the stream, and the agent looks at its node anew and says hello again. Else it
// answers {"rank"?, "interval"?}, now and whenever one of them changes: the rank is missing until it is
// known, the interval (in seconds) where the agent's own will do. Each beat is `resource.agent-beat`, without
// payload and response. Farewell is `resource.agent-cancel`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "client/backoff.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/rset/resource_set.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::agent {

using client::Milliseconds;
using client::Random;

struct AgentOptions {
  /// The time between beats where the daemon does not give one.
  Milliseconds interval{10000};
  /// How long the daemon may take to answer a hello.
  Milliseconds answer_time{30000};
  /// Pauses after a connection that was lost or not made, an end of the daemon included.
  client::BackoffLimits lost{Milliseconds(500), Milliseconds(10000)};
  /// Pauses after a refusal.
  client::BackoffLimits refused{Milliseconds(1000), Milliseconds(60000)};
};

using proto::topics::longest_interval;
using proto::topics::shortest_interval;

class Agent {
 public:
  /// `repeated`: the same failure as before.
  enum class Severity { repeated, info, warning };
  using Report = std::function<void(Severity, const std::string&)>;

  /// The resources of this host alone; with true also those that this process may not use. May throw Error.
  using Probe = std::function<rset::ResourceSet(bool norestrict)>;

  /// Probes at once, restricted, and throws what that throws. The connection must outlive the agent.
  Agent(client::Connection& connection, const std::string& hostname, Probe probe, AgentOptions options,
        Random random, Report report);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Says the first hello.
  void start();
  /// Says farewell, and waits for the answer for at most this long. Then it is done().
  void stop(Milliseconds patience);
  [[nodiscard]] bool done() const noexcept { return done_; }

 private:
  void say_hello();
  void on_response(const client::Response& response);
  void on_accepted(const nlohmann::json& answer);
  /// Says hello again with what the daemon wants to know of this node.
  void report_anew(bool norestrict);
  void look(bool norestrict);
  void on_silence();
  void beat();
  /// The request has ended, or was given up.
  void try_again(const std::string& why, client::Backoff& backoff);
  void set_timer(Milliseconds delay, void (Agent::*f)());
  void drop_timer();
  void drop_request();
  void finish();

  client::Connection& connection_;
  std::string hostname_;
  Probe probe_;
  bool norestrict_ = false;
  rset::ResourceSet resources_;
  AgentOptions options_;
  Random random_;
  Report report_;
  client::Backoff lost_;
  client::Backoff refused_;

  /// The hello that has not ended.
  std::optional<client::Connection::RequestId> request_;
  /// For the next thing to do: the time of an answer that does not come, a beat, or a new attempt.
  std::optional<client::Connection::TimerId> timer_;
  /// When the daemon first answered this hello.
  std::optional<std::chrono::steady_clock::time_point> accepted_;
  std::optional<std::uint64_t> rank_;
  Milliseconds interval_;
  std::string last_failure_;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace resourced::agent
