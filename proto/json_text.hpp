// JSON written straight as text, for answers that are large or frequent.
#pragma once

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
/// The shortest decimal form that reads back as the same number.
void append_number(std::string& out, double number);
/// `{NAME: IDSET, ...}`.
void append_properties(std::string& out, const ResourceSet::Properties& properties);

}  // namespace resourced::proto
