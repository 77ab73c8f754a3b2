// JSON written straight as text, for answers that are large or frequent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/rset/resource_set.hpp"
#include "core/text/idset.hpp"

namespace resourced::proto {

/// A JSON string with its quotes. Text that is not UTF-8 is written with replacement characters.
void append_string(std::string& out, std::string_view text);
/// `"KEY":` and before it a comma, unless it is the first of its object.
void append_key(std::string& out, std::string_view key);
/// An idset as a JSON string.
void append_idset(std::string& out, const IdSet& ids);
/// The shortest decimal form that reads back as the same number, always with a decimal point: readers of Flux
/// take only a real for a time. `number` is finite.
void append_number(std::string& out, double number);
void append_integer(std::string& out, std::int64_t number);
/// `{NAME: IDSET, ...}`.
void append_properties(std::string& out, const ResourceSet::Properties& properties);

}  // namespace resourced::proto
