#include "daemon/cluster/coordinator.hpp"

#include <cerrno>
#include <utility>

#include "process/loop.hpp"

namespace resourced::daemon::cluster {

using ::resourced::cluster::Batch;
using ::resourced::cluster::Effects;
using ::resourced::cluster::Outcome;
using ::resourced::cluster::Refused;
using ::resourced::cluster::Roster;
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

Coordinator::Coordinator(boost::asio::io_context& loop, const config::Cluster& settings, Member& member)
    : member_(member), etcd_(loop, settings), timer_(loop), next_question_(loop) {}

void Coordinator::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  const SteadyTime now = process::steady_clock();
  member_.disconnect(now);
  carry_out(member_.tick(now));
}

void Coordinator::commit(Batch batch) {
  carry_out(member_.commit(std::move(batch), process::steady_clock()));
}

void Coordinator::resign(std::optional<std::string> successor) {
  carry_out(member_.resign(process::steady_clock(), std::move(successor)));
}

void Coordinator::ask_roster(TakeRoster take) {
  questions_.push_back(std::move(take));
  if (!is_asking_) send_roster();
}

void Coordinator::send_roster() {
  is_asking_ = true;
  etcd_.send(::resourced::cluster::ask_roster(),
             [this, asked = std::exchange(questions_, {})](const Outcome& outcome) {
               const auto answer = roster_of(outcome);
               for (const TakeRoster& take : asked) take(answer);
               process::run_at(next_question_, process::steady_clock() + pause_of_questions, [this] {
                 is_asking_ = false;
                 if (!questions_.empty()) send_roster();
               });
             });
}

// Requests first: a callback may take the next step.
void Coordinator::carry_out(Effects effects) {
  for (auto& [id, request] : effects.requests) {
    etcd_.send(std::move(request), [this, id = id](const Outcome& outcome) {
      carry_out(member_.answer(id, outcome, process::steady_clock()));
    });
  }
  if (effects.joined) callbacks_.joined(*effects.joined);
  for (const Batch& batch : effects.entries) callbacks_.entry(batch);
  if (effects.committed) callbacks_.committed(*effects.committed);
  if (effects.leads) callbacks_.leads();
  if (effects.ended) callbacks_.ended(*effects.ended);
  if (effects.failed) callbacks_.failed(*effects.failed);
  callbacks_.changed();
  arm();
}

void Coordinator::arm() {
  const auto deadline = member_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  process::run_at(timer_, *deadline, [this] { carry_out(member_.tick(process::steady_clock())); });
}

}  // namespace resourced::daemon::cluster
