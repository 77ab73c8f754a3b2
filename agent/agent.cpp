// Hello, beats and farewell of the agent, see agent.hpp.
#include "agent/agent.hpp"

#include <cerrno>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/invariant.hpp"
#include "core/json/utf8.hpp"
#include "core/text/node_name.hpp"

namespace resourced::agent {

namespace {

constexpr const char* topic = "resource.agent";

std::optional<Milliseconds> interval_of(const proto::topics::AgentAnswer& answer) {
  if (!answer.interval) return std::nullopt;
  return std::chrono::round<Milliseconds>(*answer.interval);
}

}  // namespace

Agent::Agent(client::Connection& connection, Name name, Probe probe, AgentOptions options, Random random,
             Report report)
    : connection_(connection),
      name_(std::move(name)),
      probe_(std::move(probe)),
      hostname_(name_()),
      options_(std::move(options)),
      random_(random),
      report_(std::move(report)),
      lost_(options_.lost),
      refused_(options_.refused),
      interval_(options_.interval) {
  look(false);
}

Agent::~Agent() {
  drop_timer();
  if (look_timer_) connection_.cancel_timer(*look_timer_);
  if (request_) connection_.forget(*request_);
}

void Agent::look(bool norestrict) {
  resources_ = probe_(hostname_, norestrict);
  norestrict_ = norestrict;
  is_fresh_ = true;
}

bool Agent::look_again() {
  rset::ResourceSet before = std::move(resources_);
  try {
    look(norestrict_);
  } catch (const Error& error) {
    resources_ = std::move(before);
    const std::string failure = json_text::printable_line(error.what());
    report_(failure == last_probe_failure_ ? Severity::repeated : Severity::warning,
            fmt::format("the hardware cannot be read, so it is reported as before: {}", failure));
    last_probe_failure_ = failure;
    return false;
  }
  last_probe_failure_.clear();
  if (resources_.encode() == before.encode()) return false;
  const auto is_now = resources_.counts();
  const auto was = before.counts();
  report_(Severity::warning,
          fmt::format("the hardware has changed: {} cores and {} gpus now, {} and {} before", is_now.cores,
                      is_now.gpus, was.cores, was.gpus));
  return true;
}

void Agent::look_later() {
  look_timer_ = connection_.after(options_.probe_interval, [this] {
    look_timer_.reset();
    // Without an accepted hello no probe is needed now: the agent probes before the next hello.
    if (!stopping_ && accepted_ && look_again()) say_hello_in_place();
    look_later();
  });
}

// Sends the new hello before it cancels the former one, so that the daemon always has an agent of this node.
void Agent::say_hello_in_place() {
  const auto former = std::exchange(request_, std::nullopt);
  drop_timer();
  accepted_.reset();
  say_hello();
  if (!former) return;
  connection_.cancel(*former);
  connection_.forget(*former);
}

void Agent::start() {
  say_hello();
  look_later();
}

void Agent::stop(Milliseconds patience) {
  if (stopping_) return;
  stopping_ = true;
  drop_timer();
  if (!request_) {
    finish();
    return;
  }
  connection_.cancel(*request_);
  set_timer(patience, &Agent::finish);
}

void Agent::finish() {
  drop_timer();
  if (request_) connection_.forget(*std::exchange(request_, std::nullopt));
  done_ = true;
}

void Agent::say_hello() {
  try {
    std::string hostname = name_();
    if (text::is_localhost(hostname))
      throw Error(EINVAL, fmt::format("this host has no name yet, it is {}", hostname));
    if (hostname != hostname_) {
      report_(Severity::info, fmt::format("this host is {} now, it was {}", hostname, hostname_));
      hostname_ = std::move(hostname);
      look(norestrict_);
    }
    if (!is_fresh_) (void)look_again();
    is_fresh_ = false;
  } catch (const Error& error) {
    return try_again(error.what(), refused_);
  }
  const auto handler = [this](const client::Response& response) { on_response(response); };
  client::SendOptions options;
  options.streaming = true;
  try {
    request_ = connection_.send(topic,
                                proto::topics::encode_agent_hello(hostname_, resources_, norestrict_,
                                                                  options_.checks_health, options_.boot_id),
                                handler, options);
  } catch (const Error& error) {
    try_again(error.what(), lost_);
    return;
  }
  set_timer(options_.answer_time, &Agent::on_silence);
}

void Agent::on_silence() {
  drop_request();
  try_again(fmt::format("{}: no answer from {} within {:g} s", topic, connection_.uri(),
                        Seconds(options_.answer_time).count()),
            lost_);
}

void Agent::on_response(const client::Response& response) {
  if (response.last()) request_.reset();
  if (stopping_) {
    if (response.last()) finish();
    return;
  }
  if (!response.ok()) {
    const Error& error = response.error();
    // EHOSTUNREACH: a standby answered, which may lead next, so retry after the shorter pauses.
    if (response.local() || error.errnum() == EHOSTUNREACH) {
      try_again(error.what(), lost_);
    } else if (error.errnum() == ECANCELED || error.errnum() == ENODATA) {
      try_again(fmt::format("the daemon ended: {}", error.what()), lost_);
    } else {
      try_again(fmt::format("the daemon refuses this agent: {}", error.what()), refused_);
    }
    return;
  }
  if (response.last()) {
    try_again(fmt::format("{}: the daemon does not keep the stream open", topic), refused_);
    return;
  }
  try {
    on_accepted(response.payload());
  } catch (const Error& error) {
    drop_request();
    try_again(error.what(), refused_);
  }
}

void Agent::on_accepted(const nlohmann::json& payload) {
  const auto answer = proto::topics::parse_agent_answer(payload);
  if (answer.norestrict.value_or(norestrict_) != norestrict_) return report_anew(*answer.norestrict);
  const bool first = !accepted_;
  if (first) {
    accepted_ = std::chrono::steady_clock::now();
    last_failure_.clear();
  }
  const auto before =
      std::exchange(interval_, interval_of(answer).value_or(first ? options_.interval : interval_));
  if (answer.rank) rank_ = answer.rank;
  const auto beats = fmt::format("a beat every {:g} s", Seconds(interval_).count());
  report_(Severity::info, rank_
                              ? fmt::format("online as rank {}, {}", *rank_, beats)
                              : fmt::format("accepted by the daemon, the rank is not known yet, {}", beats));
  if (first && answer.gated) {
    report_(Severity::warning,
            "the daemon keeps this node down until a health check passes, and this agent runs none: see "
            "--health-program");
  }
  tell_health();
  if (first) {
    // Draw the first pause, so that agents that were accepted at the same moment do not beat together.
    std::uniform_int_distribution<Milliseconds::rep> draw(1, interval_.count());
    set_timer(Milliseconds(draw(random_)), &Agent::beat);
  } else if (interval_ != before) {
    set_timer(interval_, &Agent::beat);
  }
}

void Agent::report_anew(bool norestrict) {
  look(norestrict);
  report_(Severity::info,
          norestrict
              ? "the daemon asks for all cores of this node, including those that this process may not use"
              : "the daemon asks for the cores of this node that this process may use");
  drop_request();
  drop_timer();
  accepted_.reset();
  say_hello();
}

void Agent::beat() {
  connection_.notify(fmt::format("{}-beat", topic), nullptr);
  set_timer(interval_, &Agent::beat);
}

void Agent::on_health(const nodes::HealthReport& health) {
  RESOURCED_INVARIANT(options_.checks_health);
  if (health_ == health) return;
  health_ = health;
  if (health.status == 0) {
    report_(Severity::info, "the health check has passed");
  } else {
    const std::string why = health.reason.empty() ? fmt::format("status {}", health.status)
                                                  : json_text::printable_line(health.reason);
    report_(Severity::warning, fmt::format("the health check has failed: {}", why));
  }
  tell_health();
}

void Agent::tell_health() {
  if (!health_ || !accepted_) return;
  connection_.notify(fmt::format("{}-health", topic),
                     proto::topics::encode_agent_health({std::nullopt, *health_}));
}

void Agent::try_again(const std::string& why, client::Backoff& backoff) {
  if (accepted_) {
    const auto time = std::chrono::steady_clock::now() - *accepted_;
    for (auto* each : {&lost_, &refused_}) each->held(std::chrono::floor<Milliseconds>(time));
  }
  accepted_.reset();
  rank_.reset();
  const auto delay = backoff.next(random_);
  const auto failure = json_text::printable_line(why);
  report_(failure == last_failure_ ? Severity::repeated : Severity::warning,
          fmt::format("{}; trying again in {:.1f} s", failure, Seconds(delay).count()));
  last_failure_ = failure;
  set_timer(delay, &Agent::say_hello);
}

void Agent::set_timer(Milliseconds delay, void (Agent::*f)()) {
  drop_timer();
  timer_ = connection_.after(delay, [this, f] {
    timer_.reset();
    (this->*f)();
  });
}

void Agent::drop_timer() {
  if (timer_) connection_.cancel_timer(*std::exchange(timer_, std::nullopt));
}

void Agent::drop_request() {
  const auto id = std::exchange(request_, std::nullopt);
  if (!id) return;
  connection_.cancel(*id);
  connection_.forget(*id);
}

}  // namespace resourced::agent
