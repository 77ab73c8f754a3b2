// The Agent keeps a node online: it sends a hello with the node's name, which may change, and R to the
// daemon, sends beats while the daemon keeps the stream of the hello open, and retries the hello without
// limit when the stream has ended or the daemon cannot be reached. The connection does the input and output;
// texts for the operator go to a Report function.
//
// The hello is `resource.agent` {"hostname", "R", "norestrict", ...}, a streaming request; norestrict tells
// whether R includes the cores that this process may not use. A daemon that wants the other value answers
// {"norestrict"} and ends the stream; the agent then probes its node again and sends another hello. Otherwise
// the daemon answers {"rank"?, "interval"?}, at once and on each change: the rank is missing until it is
// known, the interval (in seconds) if the agent's own is to be used. Each beat is `resource.agent-beat`,
// without payload and response. The farewell is `resource.agent-cancel`.
//
// The hello also has the kernel's id of this boot, which tells a reboot of the node from a restart of its
// agent.
//
// The agent probes the node again before each hello and at an interval. If hardware has failed or has come
// back, the agent sends another hello, which replaces the last one.
//
// An agent that checks the health of its node says so in the hello, and sends `resource.agent-health`
// {"status", "reason"?} when a result differs from the last one, and after each answer to a hello.
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
  /// The time between probes of the node.
  Milliseconds probe_interval{300000};
  /// Time limit for the daemon's answer to a hello.
  Milliseconds answer_time{30000};
  /// Pauses after a lost or failed connection, and after an end of the daemon.
  client::BackoffLimits lost{Milliseconds(500), Milliseconds(10000)};
  /// Pauses after the daemon has refused a hello.
  client::BackoffLimits refused{Milliseconds(1000), Milliseconds(60000)};
  /// The owner reports results of health checks with on_health().
  bool checks_health = false;
  /// The id of this boot of the node's kernel; empty if it is not known.
  std::string boot_id = {};
};

using proto::topics::longest_interval;
using proto::topics::shortest_interval;

class Agent {
 public:
  /// `repeated` is for a failure that was reported just before.
  enum class Severity { repeated, info, warning };
  using Report = std::function<void(Severity, const std::string&)>;

  /// Returns the present name of this host. May throw Error.
  using Name = std::function<std::string()>;
  /// Returns the resources of this host alone, under this name; with `norestrict` also those that this
  /// process may not use. May throw Error.
  using Probe = std::function<rset::ResourceSet(const std::string& hostname, bool norestrict)>;

  /// Probes the node at once, without norestrict. Throws what `name` and `probe` throw. The connection must
  /// outlive the agent.
  Agent(client::Connection& connection, Name name, Probe probe, AgentOptions options, Random random,
        Report report);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Sends the first hello.
  void start();
  /// Sends the result of a check of this node if it differs from the last one. Requires `checks_health`.
  void on_health(const nodes::HealthReport& health);
  /// Sends the farewell. The agent is done() once the daemon has answered or `patience` is over.
  void stop(Milliseconds patience);
  [[nodiscard]] bool done() const noexcept { return done_; }

 private:
  void say_hello();
  void on_response(const client::Response& response);
  void on_accepted(const nlohmann::json& answer);
  /// Probes the node again with the norestrict that the daemon wants, and sends another hello.
  void report_anew(bool norestrict);
  void look(bool norestrict);
  /// Probes the node again. Returns whether its resources differ. A failure is reported and changes nothing.
  bool look_again();
  void look_later();
  void say_hello_in_place();
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

  /// The hello whose stream is open.
  std::optional<client::Connection::RequestId> request_;
  /// Timer for the next beat, the next hello, or the time limit of an answer.
  std::optional<client::Connection::TimerId> timer_;
  std::optional<client::Connection::TimerId> look_timer_;
  /// The result of the last probe has not been in a hello yet.
  bool is_fresh_ = false;
  std::string last_probe_failure_;
  /// Time of the daemon's first answer to the present hello.
  std::optional<std::chrono::steady_clock::time_point> accepted_;
  std::optional<std::uint64_t> rank_;
  Milliseconds interval_;
  std::optional<nodes::HealthReport> health_;
  std::string last_failure_;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace resourced::agent
