#include "daemon/service/answers.hpp"

#include <utility>

#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {
namespace {

// Upper bound of cached sets of targets.
constexpr std::size_t max_resources = 64;

}  // namespace

template <class Encode>
const proto::Payload& Answers::cached(Cached& cache, std::uint64_t version, Encode encode) {
  if (!cache.payload || cache.version != version) {
    cache.payload = proto::make_payload(encode());
    cache.version = version;
  }
  return cache.payload;
}

// The holders of partitions change without an event, so the status of a divided inventory is encoded each
// time.
proto::Payload Answers::status() {
  if (replica_ != nullptr) return replica_->status();
  const auto encode = [this] {
    return proto::topics::encode_status(module_, acquisition_, health_.unchecked());
  };
  // Changes of health are no events, so version() does not show them.
  if (health_version_ != health_.version()) status_.payload.reset();
  health_version_ = health_.version();
  if (!acquisition_.partitions().empty()) return proto::make_payload(encode());
  return cached(status_, version(), encode);
}

proto::Payload Answers::inventory() {
  return cached(inventory_, module_.inventory_version(),
                [this] { return proto::topics::encode_inventory(module_); });
}

proto::Payload Answers::hostlist() {
  return cached(hostlist_, module_.inventory_version(),
                [this] { return proto::topics::encode_hostlist(module_); });
}

std::shared_ptr<FeasibilityInventory> Answers::acquirable() {
  if (acquirable_version_ != module_.inventory_version()) {
    acquirable_ = std::make_shared<FeasibilityInventory>(module_.inventory(), module_.excluded());
    acquirable_version_ = module_.inventory_version();
  }
  return acquirable_;
}

proto::Payload Answers::acquired(const text::IdSet& targets, const text::IdSet& kept,
                                 const std::optional<std::string>& allocations) {
  const std::string name = targets.encode();
  if (resources_.size() >= max_resources && !resources_.contains(name)) resources_.clear();
  Resources& resources = resources_[name];
  if (resources.version != module_.inventory_version()) {
    resources.text = module_.inventory().copy_ranks(targets).encode();
    resources.version = module_.inventory_version();
  }
  return proto::make_payload(
      proto::topics::encode_acquired(resources.text, kept & module_.available(), allocations, term_));
}

}  // namespace resourced::daemon::service
