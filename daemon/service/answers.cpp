#include "daemon/service/answers.hpp"

#include <cerrno>

#include "core/error.hpp"
#include "proto/message.hpp"
#include "proto/topics/status.hpp"

namespace resourced::daemon::service {

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

void Answers::require_inventory() const {
  if (committed_.state().defined) return;
  engine_.require_inventory();
  throw Error(EAGAIN, "the inventory is not known yet");
}

void Answers::require_inventory(int errnum, const char* text) const {
  if (committed_.state().has_targets() && !committed_.state().defined) throw Error(errnum, text);
  require_inventory();
}

// The holders of partitions change without an event, so a status that tells of them is encoded each time.
proto::Payload Answers::status() {
  require_inventory();
  const nodes::Health& health = engine_.nodes().health();
  const nodes::Rivals& rivals = engine_.nodes().rivals();
  const module::State& state = committed_.state();
  // A scheduler that has acquired since an exclusion that is not committed yet waits for no excluded target.
  const std::string partitions = proto::topics::encode_partitions(
      state, engine_.acquisition(), state.acquirable() & engine_.module().acquirable());
  const proto::topics::Live live{partitions, health.unchecked(), rivals.origins()};
  const auto encode = [&] {
    return proto::topics::encode_status(state, cluster_.follows() ? nullptr : &live, sequence());
  };
  // Changes of health and of rivals are no events, so last() does not count them.
  const std::uint64_t reports = health.version() + rivals.version();
  if (reports_version_ != reports) status_.payload.reset();
  reports_version_ = reports;
  if (!partitions.empty()) return proto::make_payload(encode());
  return cached(status_, committed_.last(), encode);
}

proto::Payload Answers::inventory() {
  require_inventory();
  // The answer of a standby has the event.
  return cached(inventory_, cluster_.follows() ? committed_.last() : committed_.inventory_version(),
                [this] { return proto::topics::encode_inventory(committed_.state(), sequence()); });
}

proto::Payload Answers::hostlist() {
  require_inventory();
  return cached(hostlist_, committed_.inventory_version(),
                [this] { return proto::topics::encode_hostlist(committed_.state()); });
}

std::shared_ptr<FeasibilityInventory> Answers::acquirable() {
  require_inventory();
  if (acquirable_version_ != committed_.inventory_version()) {
    acquirable_ =
        std::make_shared<FeasibilityInventory>(committed_.state().inventory, committed_.state().exclude);
    acquirable_version_ = committed_.inventory_version();
  }
  return acquirable_;
}

proto::Payload Answers::acquired(const text::IdSet& targets, const text::IdSet& kept,
                                 proto::topics::AcquiredOptions options) {
  const module::Module& module = engine_.module();
  const std::string name = targets.encode();
  if (resources_.size() >= max_resources && !resources_.contains(name)) resources_.clear();
  Resources& resources = resources_[name];
  if (resources.version != module.inventory_version()) {
    resources.text = module.inventory().copy_ranks(targets).encode();
    resources.version = module.inventory_version();
  }
  options.leader = cluster_.term();
  return proto::make_payload(
      proto::topics::encode_acquired(resources.text, kept & module.available(), options));
}

}  // namespace resourced::daemon::service
