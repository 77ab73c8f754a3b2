#include "daemon/service/cluster_topics.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "daemon/service/topics.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/topics/cluster.hpp"

namespace resourced::daemon::service {

std::string Following::Standing::line() const {
  if (differs.empty()) return text;
  return fmt::format("{}; its files differ from the leader's: {}", text, fmt::join(differs, ", "));
}

ClusterTopics::Role ClusterTopics::role() const {
  if (leads()) return Role::leader;
  if (!follows()) return Role::alone;
  return following_->standing().is_in_touch ? Role::standby : Role::no_majority;
}

void ClusterTopics::check(Needs needs) const {
  if (follows() && needs != Needs::log) throw proto::topics::standby_refusal(following_->standing().text);
}

void ClusterTopics::check_event(log::Sequence event, log::Sequence last) const {
  if (!follows() || event <= last) return;
  throw proto::topics::standby_refusal(
      fmt::format("{}; it does not have event {} yet", following_->standing().text, event));
}

std::optional<std::string> ClusterTopics::standing() const {
  if (leads()) return fmt::format("leader of epoch {}", leadership_->term().epoch);
  if (!follows()) return std::nullopt;
  const Following::Standing standing = following_->standing();
  if (!standing.is_in_touch) throw Error(EAGAIN, standing.text);
  return standing.line();
}

std::vector<std::string> ClusterTopics::differs() const {
  return follows() ? following_->standing().differs : std::vector<std::string>();
}

std::optional<proto::topics::Term> ClusterTopics::term() const {
  return leads() ? std::optional(leadership_->term()) : std::nullopt;
}

void ClusterTopics::keep_holders(std::vector<module::PartitionHolder> holders) {
  if (holders == kept_holders_) return;
  leadership_->keep_holders(holders);
  kept_holders_ = std::move(holders);
}

void ClusterTopics::leader(const Call& call) {
  check(Needs::leader);
  requests_.respond(call, proto::make_payload(proto::topics::encode_leader(term())));
}

void ClusterTopics::members(const Call& call) {
  ask(call, [this](proto::RequestKey key, const ::resourced::cluster::Roster& roster) {
    proto::topics::Cluster answer;
    if (leads()) {
      answer.name = leadership_->name();
      answer.epoch = leadership_->term().epoch;
    } else if (roster.leader) {
      answer.name = roster.leader->name;
      answer.epoch = static_cast<std::uint64_t>(roster.leader->epoch);
    }
    answer.head = roster.head;
    const ::resourced::cluster::FileDigests leading = leading_files(roster);
    for (const ::resourced::cluster::Standing& member : roster.members) {
      answer.members.push_back({member.name, member.uri, member.version, member.applied,
                                ::resourced::cluster::differing_files(member.files, leading)});
    }
    requests_.finish(key, proto::make_payload(proto::topics::encode_cluster(answer)));
  });
}

void ClusterTopics::hand_over(const Call& call) {
  ask(call, [this, name = proto::topics::parse_hand_over(call.optional_object())](
                proto::RequestKey key, const ::resourced::cluster::Roster& roster) {
    const ::resourced::cluster::Standing& successor =
        ::resourced::cluster::choose_successor(roster, leadership_->name(), name);
    requests_.finish(key,
                     proto::make_payload(proto::topics::encode_successor({successor.name, successor.uri})));
    leadership_->hand_over(successor.name);
  });
}

void ClusterTopics::ask(const Call& call, Finish finish) {
  if (membership() == nullptr) throw Error(ENOENT, "this daemon is in no cluster");
  const std::string& who = call.sender.name;
  const auto own = static_cast<std::size_t>(std::ranges::count(questions_, who, &Question::who));
  if (own >= most_of_one || questions_.size() >= most) {
    throw Error(EBUSY, fmt::format("{} questions of {} and {} of all clients to etcd wait already", own, who,
                                   questions_.size()));
  }
  requests_.keep(call, [&](proto::RequestKey key) {
    const std::uint64_t number = ++last_number_;
    questions_.push_back({number, key, who, std::move(finish)});
    requests_.become(key, streams::ClusterQuery{});
    send(number);
  });
}

void ClusterTopics::send(std::uint64_t number) {
  membership()->ask_roster([this, number](const auto& answer) {
    deferral_.post("resource.cluster", [this, number, answer] { take(number, answer); });
  });
}

void ClusterTopics::lead(Leadership& leadership) {
  following_ = nullptr;
  leadership_ = &leadership;
  for (const Question& question : questions_) send(question.number);
}

void ClusterTopics::take(std::uint64_t number,
                         const std::variant<::resourced::cluster::Roster, Error>& answer) {
  const auto found = std::ranges::find(questions_, number, &Question::number);
  if (found == questions_.end()) return;
  const Question question = std::move(*found);
  questions_.erase(found);
  try {
    if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
    question.finish(question.key, std::get<::resourced::cluster::Roster>(answer));
  } catch (const Error& error) {
    requests_.fail(question.key, error);
  }
}

void ClusterTopics::release(proto::RequestKey key) {
  std::erase_if(questions_, [&](const Question& question) { return question.key == key; });
}

}  // namespace resourced::daemon::service
