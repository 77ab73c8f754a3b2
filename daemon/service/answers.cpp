#include "daemon/service/answers.hpp"

#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "proto/message.hpp"
#include "proto/topics/acquire.hpp"
#include "proto/topics/logged_state.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {

using proto::topics::LogRead;

namespace {

// Maximum number of cached sets of targets.
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
  if (replica_ != nullptr) return replica_->read(LogRead::status);
  engine_.require_inventory();
  const module::Acquisition& acquisition = engine_.acquisition();
  const nodes::Health& health = engine_.nodes().health();
  const nodes::Rivals& rivals = engine_.nodes().rivals();
  const auto encode = [&] {
    return proto::topics::encode_status(module_, acquisition, health.unchecked(), rivals.origins());
  };
  // Changes of health and of rivals are no events, so version() does not count them.
  const std::uint64_t reports = health.version() + rivals.version();
  if (reports_version_ != reports) status_.payload.reset();
  reports_version_ = reports;
  if (!acquisition.partitions().empty()) return proto::make_payload(encode());
  return cached(status_, version(), encode);
}

proto::Payload Answers::inventory() {
  if (replica_ != nullptr) return replica_->read(LogRead::inventory);
  engine_.require_inventory();
  return cached(inventory_, module_.inventory_version(),
                [this] { return proto::topics::encode_inventory(module_); });
}

void Answers::require_inventory() const {
  if (replica_ != nullptr) return replica_->require_state();
  engine_.require_inventory();
}

proto::Payload Answers::hostlist() {
  require_inventory();
  if (replica_ != nullptr) return replica_->read(LogRead::hostlist);
  return cached(hostlist_, module_.inventory_version(),
                [this] { return proto::topics::encode_hostlist(module_); });
}

std::shared_ptr<FeasibilityInventory> Answers::acquirable() {
  require_inventory();
  const std::uint64_t version =
      replica_ != nullptr ? replica_->inventory_version() : module_.inventory_version();
  if (acquirable_version_ != version) {
    acquirable_ = replica_ != nullptr
                      ? std::make_shared<FeasibilityInventory>(replica_->inventory(), replica_->excluded())
                      : std::make_shared<FeasibilityInventory>(module_.inventory(), module_.excluded());
    acquirable_version_ = version;
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
