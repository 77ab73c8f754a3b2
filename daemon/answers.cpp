#include "daemon/answers.hpp"

#include "proto/payloads.hpp"
#include "proto/rpc.hpp"

namespace resourced::daemon {
namespace {

// As many parts of an inventory as are worth keeping.
constexpr std::size_t max_resources = 64;

}  // namespace

template <class Encode>
const proto::Payload& Answers::cached(Cached& cache, std::uint64_t version, Encode encode) {
  if (!cache.payload || cache.version != version) {
    cache.payload = proto::make_payload(encode(module_));
    cache.version = version;
  }
  return cache.payload;
}

proto::Payload Answers::status() { return cached(status_, module_.state_version(), proto::encode_status); }

proto::Payload Answers::sched_status() {
  return cached(sched_status_, module_.state_version(), proto::encode_sched_status);
}

proto::Payload Answers::inventory() {
  return cached(inventory_, module_.inventory_version(), proto::encode_inventory);
}

proto::Payload Answers::acquired(const IdSet& targets) {
  const std::string name = targets.encode();
  if (resources_.size() >= max_resources && !resources_.contains(name)) resources_.clear();
  Resources& resources = resources_[name];
  if (resources.version != module_.inventory_version()) {
    resources.text = module_.inventory().copy_ranks(targets).encode();
    resources.version = module_.inventory_version();
  }
  return proto::make_payload(proto::encode_acquired(resources.text, targets & module_.available()));
}

}  // namespace resourced::daemon
