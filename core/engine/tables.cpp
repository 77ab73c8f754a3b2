#include "core/engine/tables.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace resourced::engine {

void Tables::apply(const TableChanges& changes) {
  if (changes.forget_drains) drains_.clear();
  apply_drains(drains_, changes.undrained, changes.drained);
  if (changes.forget_scheduled) scheduled_.clear();
  apply_drains(scheduled_, changes.unscheduled, changes.scheduled);
  apply_properties(changes);
  apply_allocations(changes);
  if (changes.forget_shrunk) shrunk_.clear();
  changes.shrunk.for_each([&](std::string_view host, std::uint32_t ordinal) {
    const module::TargetName target{std::string(host), ordinal};
    shrunk_.insert(target);
    std::erase_if(properties_, [&](const auto& property) { return property.first.second == target; });
  });
  changes.unshrunk.for_each([&](std::string_view host, std::uint32_t ordinal) {
    shrunk_.erase({std::string(host), ordinal});
  });
  if (changes.forget_loaded && inventory_ && inventory_->method == module::DefineMethod::reload)
    inventory_.reset();
  if (changes.inventory) inventory_ = changes.inventory;
  if (changes.expiration) expiration_ = changes.expiration;
}

void Tables::apply_drains(Drains& drains, const module::TargetNames& gone,
                          const std::vector<TableChanges::Drained>& changed) {
  gone.for_each([&](std::string_view host, std::uint32_t ordinal) {
    drains.erase({std::string(host), ordinal});
  });
  for (const TableChanges::Drained& drained : changed) {
    drained.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
      drains.insert_or_assign({std::string(host), ordinal},
                              Drain{drained.timestamp, drained.reason, drained.by, drained.until});
    });
  }
}

void Tables::apply_properties(const TableChanges& changes) {
  using Difference = module::PropertyState::Difference;
  if (changes.forget_properties) properties_.clear();
  for (const TableChanges::Property& property : changes.properties) {
    property.targets.for_each([&](std::string_view host, std::uint32_t ordinal) {
      std::pair<std::string, module::TargetName> key{property.name, {std::string(host), ordinal}};
      if (property.difference == Difference::same) {
        properties_.erase(key);
      } else {
        properties_.insert_or_assign(std::move(key), property.difference == Difference::added);
      }
    });
  }
}

void Tables::apply_allocations(const TableChanges& changes) {
  if (changes.forget_allocations) allocations_.clear();
  for (const std::string& id : changes.freed) allocations_.erase(id);
  for (const TableChanges::Allocated& allocation : changes.allocated)
    allocations_.insert_or_assign(allocation.id, allocation);
}

module::RecordedState Tables::state() const {
  module::RecordedState state;
  for (const auto& [target, drain] : drains_)
    state.drains.push_back({target, drain.timestamp, drain.reason, drain.by, drain.until});
  for (const auto& [target, drain] : scheduled_)
    state.scheduled.push_back({target, drain.timestamp, drain.reason, drain.by, drain.until});
  for (const auto& [key, added] : properties_) state.properties.push_back({key.first, key.second, added});
  for (const auto& [id, row] : allocations_) {
    state.allocations.push_back({id, rset::ResourceSet::parse(*row.resources), row.ordinals, row.expiration,
                                 row.note, row.partition});
  }
  state.shrunk.assign(shrunk_.begin(), shrunk_.end());
  state.expiration = expiration_;
  if (inventory_) {
    state.inventory = {inventory_->method,
                       std::make_shared<const rset::ResourceSet>(rset::ResourceSet::parse(inventory_->text)),
                       inventory_->replaced};
  }
  return state;
}

}  // namespace resourced::engine
