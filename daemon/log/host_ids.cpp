#include "daemon/log/host_ids.hpp"

#include <algorithm>

namespace resourced::daemon::log {

void HostIds::add(std::string_view host) {
  const std::lock_guard lock(mutex_);
  insert(host);
}

HostIds::Id HostIds::insert(std::string_view host) {
  const auto id = static_cast<Id>(names_.size());
  names_.push_back(&ids_.emplace(host, id).first->first);
  return id;
}

std::optional<HostIds::Id> HostIds::look_up(std::string_view host, Id guess) const {
  if (guess < names_.size() && *names_[guess] == host) return guess;
  const auto known = ids_.find(host);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

HostIds::Numbered HostIds::number(const text::Hostlist& hosts) {
  Numbered numbered;
  // The ids are sorted below, as an IdSet is built fast from ids in ascending order.
  std::vector<Id> ids;
  ids.reserve(hosts.size());
  const std::lock_guard lock(mutex_);
  Id next = 0;
  hosts.for_each([&](std::string_view host) {
    const auto known = look_up(host, next);
    if (!known) numbered.added.emplace_back(host);
    ids.push_back(known ? *known : insert(host));
    next = ids.back() + 1;
  });
  std::ranges::sort(ids);
  for (const Id id : ids) numbered.ids.insert(id);
  return numbered;
}

std::optional<HostIds::Id> HostIds::find(std::string_view host) const {
  const std::lock_guard lock(mutex_);
  return look_up(host, 0);
}

text::IdSet HostIds::find(const text::Hostlist& hosts) const {
  // Release the lock now and then, so that the writing thread does not wait for all of a long list.
  constexpr std::size_t at_once = 256;
  std::vector<Id> ids;
  ids.reserve(hosts.size());
  std::unique_lock lock(mutex_);
  Id next = 0;
  hosts.for_each([&, looked_up = std::size_t{0}](std::string_view host) mutable {
    if (++looked_up % at_once == 0) {
      lock.unlock();
      lock.lock();
    }
    const auto known = look_up(host, next);
    if (!known) return;
    ids.push_back(*known);
    next = *known + 1;
  });
  lock.unlock();
  std::ranges::sort(ids);
  text::IdSet found;
  for (const Id id : ids) found.insert(id);
  return found;
}

std::size_t HostIds::size() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

}  // namespace resourced::daemon::log
