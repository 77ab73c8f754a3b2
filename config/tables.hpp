// The permitted tables of a configuration: those of this daemon, and those of other parts of Flux, which may
// be in the same file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"

namespace resourced::config {

/// The tables that configure this daemon.
[[nodiscard]] std::span<const std::string_view> own_tables();

/// Keys, in a table of this daemon, of other parts of Flux: those of [access] configure Flux's broker
/// (flux-config-access(5)) and have no effect here.
[[nodiscard]] std::span<const std::string_view> flux_keys(std::string_view table) noexcept;

/// Checks the tables. Throws Error EINVAL for one that is neither this daemon's nor Flux's, with the nearest
/// known name.
void check_tables(const Document& document);

/// Returns lines about ignored values (Document::ignored()), and about keys of other parts of Flux, one each:
/// "FILE:LINE: KEY: ...". The keys of [queues] other than `hosts` share a line.
[[nodiscard]] std::vector<std::string> passed_over(const Document& document);

}  // namespace resourced::config
