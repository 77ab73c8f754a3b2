// From a document to typed values: which keys there are, what they may say, and what holds when they say
// nothing.
#pragma once

#include "config/config.hpp"
#include "config/document.hpp"

namespace resourced::config {

/// Throws Error EINVAL that names file, line and key.
[[nodiscard]] Resource read_resource(const Document& document);
[[nodiscard]] Bus read_bus(const Document& document);
[[nodiscard]] Store read_store(const Document& document);
[[nodiscard]] Log read_log(const Document& document);
[[nodiscard]] Acquire read_acquire(const Document& document);
[[nodiscard]] Access read_access(const Document& document);
[[nodiscard]] Limits read_limits(const Document& document);
[[nodiscard]] Monitor read_monitor(const Document& document);

/// Takes `resource.history`, where Flux sites write it, for `store.history`. Throws Error EINVAL if both are
/// written and differ.
void read_history(Config& config);

/// Checks settings that depend on each other. Throws Error EINVAL if nothing would ever end the discovery of
/// resources.
void check_discovery(const Config& config);

}  // namespace resourced::config
