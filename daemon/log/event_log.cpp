#include "daemon/log/event_log.hpp"

#include <utility>

#include "core/rset/targets.hpp"

namespace resourced::daemon::log {
namespace {

/// Estimated memory of a short list of hosts.
std::size_t bytes_of(const text::Hostlist& hosts) {
  constexpr std::size_t beside_name = 64;
  std::size_t bytes = 0;
  hosts.for_each([&](std::string_view host) { bytes += beside_name + host.size(); });
  return bytes;
}

}  // namespace

EventTargets event_targets(std::string_view text, std::shared_ptr<const rset::ResourceSet> inventory) {
  rset::HostSearch search = parse_known_targets(text, *inventory);
  EventTargets targets{std::move(inventory), std::move(search.ranks), {}};
  for (const std::string& host : search.unknown) targets.strangers.append(host);
  return targets;
}

NamedTargets::NamedTargets(std::string text, std::shared_ptr<const rset::ResourceSet> inventory,
                           std::shared_ptr<FilterBytes> taken)
    : text_(std::move(text)), inventory_(std::move(inventory)), taken_(std::move(taken)) {
  take(envelope + text_->size());
}

NamedTargets::~NamedTargets() { take(0); }

void NamedTargets::take(std::size_t size) {
  *taken_ += size;
  *taken_ -= std::exchange(size_, size);
}

void NamedTargets::find() {
  if (!text_) return;
  const std::string text = *std::exchange(text_, std::nullopt);
  try {
    targets_ = event_targets(text, inventory_);
    take(envelope + bytes_of(targets_->strangers));
  } catch (const Error& error) {
    refusal_ = error;
    take(envelope);
  }
}

}  // namespace resourced::daemon::log
