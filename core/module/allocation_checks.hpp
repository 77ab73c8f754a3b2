// Checks of the resources and the terms that a scheduler asks for, each by itself: the ledger is not asked.
#pragma once

#include "core/module/allocation.hpp"
#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::module {

/// Throws Error EINVAL for a note that is too long, or an expiration that is no time.
void check_terms(const AllocationRequest& wanted);
/// Throws Error EINVAL for an id of another form, resources without targets, and as check_terms() does.
void check_form(const AllocationRequest& wanted);
/// Throws Error EINVAL for a rank that the inventory lacks.
void check_ranks(const rset::ResourceSet& wanted, const rset::ResourceSet& inventory);
/// Throws Error EINVAL for hosts that are not their rank's. Requires ranks of the inventory.
void check_hosts(const rset::ResourceSet& wanted, const rset::ResourceSet& inventory);
/// Throws Error EINVAL as check_hosts() does, and for cores and gpus that the target lacks. Requires ranks of
/// the inventory.
void check_in_inventory(const rset::ResourceSet& wanted, const rset::ResourceSet& inventory);
/// Refuses the parts of an R, beside its resources, that differ from the inventory. Throws Error EINVAL for
/// unknown keys and an expiration after that of the inventory, ESTALE for properties that a target does not
/// have.
void check_keys(const AllocationRequest& wanted, const rset::ResourceSet& inventory);
/// Throws Error EHOSTDOWN for targets that are drained or excluded: an operator relies on a drained, idle
/// target to stay idle, and a scheduler may send an alloc before it reads of the drain. A target that is
/// merely offline or torpid may be up again at any time.
void check_usable(const text::IdSet& wanted, const text::IdSet& drained, const text::IdSet& excluded,
                  const rset::ResourceSet& inventory);

}  // namespace resourced::module
