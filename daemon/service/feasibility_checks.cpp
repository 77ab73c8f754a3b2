#include "daemon/service/feasibility_checks.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/feasibility/feasibility.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::daemon::service {
namespace {

std::optional<Error> judge(const proto::Message& request, std::size_t most_values,
                           FeasibilityInventory& inventory) {
  try {
    constraint::Budget budget(FeasibilityChecks::steps);
    const nlohmann::json payload = proto::parse_object(request, most_values);
    const nlohmann::json& jobspec = proto::topics::parse_feasibility(payload);
    const feasibility::Feasibility judged =
        feasibility::check_jobspec_feasibility(jobspec, inventory.acquirable(), budget);
    if (!judged.feasible()) throw Error(EINVAL, judged.reason);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

const rset::ResourceSet& FeasibilityInventory::acquirable() {
  if (!excluded_.empty()) resources_.remove_ranks(std::exchange(excluded_, {}));
  return resources_;
}

FeasibilityChecks::CheckId FeasibilityChecks::add(proto::RequestKey key, const std::string& principal,
                                                  proto::Message request, std::size_t most_values,
                                                  std::shared_ptr<FeasibilityInventory> inventory) {
  auto check = std::make_shared<Check>(
      Check{++last_id_, key, principal, std::move(request), most_values, std::move(inventory)});
  const std::size_t size = check->bytes();
  const auto line = lines_.find(principal);
  const bool own_full = line != lines_.end() &&
                        (line->second.queue.size() >= max_waiting || line->second.bytes + size > max_bytes);
  if (own_full || waiting_ >= max_waiting_of_all || bytes_ + size > max_bytes_of_all) {
    throw Error(EBUSY, "too many feasibility checks are waiting");
  }
  worker_.start("for feasibility checks");
  Line& own = lines_[principal];
  own.queue.push_back(check);
  own.bytes += size;
  ++waiting_;
  bytes_ += size;
  checks_.emplace(last_id_, std::move(check));
  check_next();
  return last_id_;
}

void FeasibilityChecks::remove(std::map<std::string, Line>::iterator line, const Queue::iterator& check) {
  const std::size_t size = (*check)->bytes();
  line->second.bytes -= size;
  bytes_ -= size;
  --waiting_;
  line->second.queue.erase(check);
  if (line->second.queue.empty()) lines_.erase(line);
}

void FeasibilityChecks::drop(CheckId id) {
  const auto found = checks_.find(id);
  if (found == checks_.end()) return;
  const std::shared_ptr<Check> check = found->second;
  checks_.erase(found);
  check->dropped = true;
  const auto line = lines_.find(check->principal);
  if (line == lines_.end()) return;
  const auto place = std::ranges::find(line->second.queue, check);
  if (place != line->second.queue.end()) remove(line, place);
}

void FeasibilityChecks::check_next() {
  if (is_checking_ || waiting_ == 0) return;
  auto line = lines_.upper_bound(served_);
  if (line == lines_.end()) line = lines_.begin();
  served_ = line->first;
  const std::shared_ptr<Check> check = line->second.queue.front();
  remove(line, line->second.queue.begin());
  is_checking_ = true;
  worker_.run([this, check] {
    deferral_.post("feasibility.check",
                   [this, check, verdict = judge(check->request, check->most_values, *check->inventory)] {
                     is_checking_ = false;
                     check_next();
                     if (check->dropped) return;
                     checks_.erase(check->id);
                     verdict ? requests_.fail(check->key, *verdict) : requests_.finish(check->key);
                   });
  });
}

}  // namespace resourced::daemon::service
