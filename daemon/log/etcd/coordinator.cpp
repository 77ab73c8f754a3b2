#include "daemon/log/etcd/coordinator.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/log.hpp"

namespace resourced::daemon::log::etcd {

using ::resourced::cluster::Batch;
using ::resourced::cluster::Effects;
using ::resourced::cluster::Outcome;
using ::resourced::cluster::Refused;
using ::resourced::cluster::Roster;
using ::resourced::cluster::Snapshot;
using ::resourced::cluster::TransactionDone;
using ::resourced::cluster::Unknown;

namespace {

constexpr Seconds pause_of_questions{0.1};

std::variant<Roster, Error> roster_of(const Outcome& outcome) {
  try {
    if (const auto* done = std::get_if<TransactionDone>(&outcome))
      return ::resourced::cluster::read_roster(*done);
  } catch (const Error& error) {
    return error;
  }
  const auto* refused = std::get_if<Refused>(&outcome);
  const auto* unknown = std::get_if<Unknown>(&outcome);
  const std::string why = refused != nullptr ? refused->why : unknown != nullptr ? unknown->why : "";
  return Error(EAGAIN, "etcd has not answered: " + why);
}

}  // namespace

void Coordinator::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  member_.disconnect(now());
  carry_out(member_.tick(now()));
}

void Coordinator::commit(Batch batch) { carry_out(member_.commit(std::move(batch), now())); }

void Coordinator::set_busy(bool is_busy) { carry_out(member_.set_busy(is_busy, now())); }

void Coordinator::resign(std::optional<std::string> successor) {
  carry_out(member_.resign(now(), std::move(successor)));
}

void Coordinator::offer(Snapshot snapshot) { carry_out(member_.offer(std::move(snapshot), now())); }

void Coordinator::decline() { member_.decline(now()); }

void Coordinator::keep_holders(std::string text) { carry_out(member_.keep_holders(std::move(text), now())); }

void Coordinator::ask_roster(TakeRoster take) {
  questions_.push_back(std::move(take));
  if (is_asking_) return;
  if (now() >= next_question_) return send_roster();
  arm();
}

void Coordinator::send_roster() {
  is_asking_ = true;
  runtime_->send(::resourced::cluster::ask_roster(),
                 [this, asked = std::exchange(questions_, {})](const Outcome& outcome) {
                   is_asking_ = false;
                   next_question_ = now() + pause_of_questions;
                   const auto answer = roster_of(outcome);
                   for (const TakeRoster& take : asked) take(answer);
                   arm();
                 });
}

// Sends the requests first, as a callback may take the next step.
void Coordinator::carry_out(Effects effects) {
  for (auto& [id, request] : effects.requests) {
    runtime_->send(std::move(request), [this, id = id](const Outcome& outcome) {
      carry_out(member_.answer(id, outcome, now()));
    });
  }
  if (effects.warning) os::log_warning("{}", *effects.warning);
  if (effects.joined) callbacks_.joined(*effects.joined);
  for (const Batch& batch : effects.entries) callbacks_.entry(batch);
  if (effects.restores) callbacks_.restores(*effects.restores);
  for (const std::string& chunk : effects.chunks) callbacks_.chunk(chunk);
  if (effects.restored) callbacks_.restored();
  if (effects.wants_snapshot) callbacks_.wants_snapshot();
  if (effects.committed) callbacks_.committed(*effects.committed);
  if (effects.leads) callbacks_.leads();
  if (effects.ended) callbacks_.ended(*effects.ended);
  if (effects.failed) callbacks_.failed(*effects.failed);
  callbacks_.changed();
  arm();
}

void Coordinator::arm() {
  auto next = member_.next_deadline();
  if (!questions_.empty() && !is_asking_) next = next ? std::min(*next, next_question_) : next_question_;
  if (next) runtime_->run_at(*next, [this] { on_time(); });
}

void Coordinator::on_time() {
  if (!questions_.empty() && !is_asking_ && now() >= next_question_) send_roster();
  carry_out(member_.tick(now()));
}

}  // namespace resourced::daemon::log::etcd
