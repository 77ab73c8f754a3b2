#include "daemon/service/allocation_topics.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/rset/targets.hpp"
#include "daemon/streams/registry.hpp"
#include "proto/message.hpp"
#include "proto/topics/allocations.hpp"

namespace resourced::daemon::service {

std::vector<engine::HolderId> AllocationTopics::holders_of(proto::ClientId client) const {
  std::vector<engine::HolderId> holders;
  requests_.registry().for_each(client, [&](const streams::Stream& stream) {
    if (const auto* scheduler = std::get_if<streams::Scheduler>(&stream))
      holders.push_back(scheduler->holder);
  });
  return holders;
}

void AllocationTopics::alloc(const Call& call) {
  // In an instance of Flux the job manager says what is allocated.
  if (executor_.module().has_brokers()) throw Error(ENOSYS, "this daemon keeps no allocations");
  executor_.step(engine::Alloc{holders_of(call.client), proto::topics::parse_alloc(call.object())},
                 call.actor());
  requests_.respond(call);
}

void AllocationTopics::free(const Call& call) {
  executor_.step(engine::Free{holders_of(call.client), proto::topics::parse_free(call.object())},
                 call.actor());
  requests_.respond(call);
}

void AllocationTopics::list(const Call& call) {
  executor_.engine().require_inventory();
  const auto wanted = proto::topics::parse_allocations_request(call.optional_object());
  const module::Ledger& ledger = executor_.module().ledger();
  std::optional<text::IdSet> targets;
  if (wanted.targets) targets = rset::parse_targets(*wanted.targets, executor_.module().configured());
  std::vector<module::SharedAllocation> found;
  std::size_t bytes = 0;
  std::size_t looked_at = 0;
  std::optional<std::string> last;
  auto next = ledger.all().upper_bound(wanted.after);
  for (; next != ledger.all().end(); ++next) {
    const module::SharedAllocation& allocation = next->second;
    if (++looked_at > most_looked_at || found.size() >= most_listed || bytes >= most_listed_bytes) break;
    last = allocation->id;
    if (targets && (allocation->resources.ranks() & *targets).empty()) continue;
    found.push_back(allocation);
    bytes += allocation->text->size();
  }
  const std::string list = proto::topics::encode_allocation_list(found, executor_.now().wall);
  if (next == ledger.all().end()) last.reset();
  requests_.respond(call, proto::make_payload(proto::topics::encode_allocations(list, last)));
}

}  // namespace resourced::daemon::service
