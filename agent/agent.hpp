// Keeps a node online: sends a hello with the node's name, which may change, and R to the daemon, sends beats
// as long as the daemon keeps the stream of the hello open, and sends the hello again, for ever, when the
// stream has ended or the daemon cannot be reached. The connection does the input and output; texts for the
// operator go to a Report function.
//
// The hello is `resource.agent` {"hostname", "R", "norestrict"}, a streaming request; norestrict tells
// whether R includes the cores that this process may not use. A daemon that wants the other value answers
// {"norestrict"} and ends the stream; the agent then probes its node again and sends another hello. Otherwise
// the daemon answers {"rank"?, "interval"?}, at once and on each change: the rank is missing until it is
// known, the interval (in seconds) if the agent's own is to be used. Each beat is `resource.agent-beat`,
// without payload and response. The farewell is `resource.agent-cancel`.
//
// An agent that runs checks of its node says so in the hello, and sends `resource.agent-health` {"status",
// "reason"?} when a result differs from the last one, and after each answer to a hello.
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
#include "core/nodes/health.hpp"
#include "core/rset/resource_set.hpp"
#include "proto/topics/liveness.hpp"

namespace resourced::agent {

using client::Milliseconds;
using client::Random;

struct AgentOptions {
  /// The time between beats if the daemon does not give one.
  Milliseconds interval{10000};
  /// How long the daemon may take to answer a hello.
  Milliseconds answer_time{30000};
  /// Pauses after a connection that was lost or not made, an end of the daemon included.
  client::BackoffLimits lost{Milliseconds(500), Milliseconds(10000)};
  /// Pauses after a refusal.
  client::BackoffLimits refused{Milliseconds(1000), Milliseconds(60000)};
  /// The owner reports results of checks with on_health().
  bool checks_health = false;
};

using proto::topics::longest_interval;
using proto::topics::shortest_interval;

class Agent {
 public:
  /// `repeated`: the same failure as before.
  enum class Severity { repeated, info, warning };
  using Report = std::function<void(Severity, const std::string&)>;

  /// The name of this host now. May throw Error.
  using Name = std::function<std::string()>;
  /// The resources of this host alone, by this name; with true also those that this process may not use. May
  /// throw Error.
  using Probe = std::function<rset::ResourceSet(const std::string& hostname, bool norestrict)>;

  /// Probes at once, restricted, and throws what that throws. The connection must outlive the agent.
  Agent(client::Connection& connection, Name name, Probe probe, AgentOptions options, Random random,
        Report report);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Sends the first hello.
  void start();
  /// The result of a check of this node. Requires `checks_health`.
  void on_health(const nodes::HealthReport& health);
  /// Sends the farewell, and waits for the answer for at most this long. Then it is done().
  void stop(Milliseconds patience);
  [[nodiscard]] bool done() const noexcept { return done_; }

 private:
  void say_hello();
  void on_response(const client::Response& response);
  void on_accepted(const nlohmann::json& answer);
  /// Probes the node again, as the daemon wants it, and sends another hello.
  void report_anew(bool norestrict);
  void look(bool norestrict);
  void on_silence();
  void beat();
  void tell_health();
  /// Schedules another hello after the request has ended or was dropped.
  void try_again(const std::string& why, client::Backoff& backoff);
  void set_timer(Milliseconds delay, void (Agent::*f)());
  void drop_timer();
  void drop_request();
  void finish();

  client::Connection& connection_;
  Name name_;
  Probe probe_;
  std::string hostname_;
  bool norestrict_ = false;
  rset::ResourceSet resources_;
  AgentOptions options_;
  Random random_;
  Report report_;
  client::Backoff lost_;
  client::Backoff refused_;

  /// The hello that has not ended.
  std::optional<client::Connection::RequestId> request_;
  /// For the next beat, the next hello, or the time limit of an answer.
  std::optional<client::Connection::TimerId> timer_;
  /// When the daemon first answered this hello.
  std::optional<std::chrono::steady_clock::time_point> accepted_;
  std::optional<std::uint64_t> rank_;
  Milliseconds interval_;
  std::optional<nodes::HealthReport> health_;
  std::string last_failure_;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace resourced::agent
