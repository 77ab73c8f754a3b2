// The tables of a configuration: those of this daemon, those of other parts of Flux, which a site's file
// holds beside them, and no others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"

namespace resourced::config {

/// The tables that configure this daemon.
[[nodiscard]] std::span<const std::string_view> own_tables();

/// Keys of a table of this daemon that are for other parts of Flux: those of [access] configure Flux's broker
/// (flux-config-access(5)). The daemon's own keys decide here.
[[nodiscard]] std::span<const std::string_view> flux_keys(std::string_view table) noexcept;

/// Throws Error EINVAL for a table that is neither this daemon's nor Flux's; it names the nearest known one.
void check_tables(const Document& document);

/// Lines that name what the document ignores (Document::ignored()), and its keys for other parts of Flux, one
/// each: "FILE:LINE: KEY: ...". Of [queues] the keys other than `hosts`, which share a line.
[[nodiscard]] std::vector<std::string> passed_over(const Document& document);

}  // namespace resourced::config
