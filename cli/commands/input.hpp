// Input of a command: files, standard input, several documents one after the other.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "core/rset/resource_set.hpp"

namespace resourced::cli::commands {

class Context;

/// Maximum size of one input, in bytes.
inline constexpr std::size_t max_input = std::size_t{1} << 30;

/// Reads a whole stream. Throws Error EFBIG for more than max_input, EIO if it cannot be read.
[[nodiscard]] std::string read_all(std::istream& in);
/// Reads a file, or standard input for "-". Throws Error that names the file.
[[nodiscard]] std::string read_file(const Context& context, const std::string& name);

/// Splits a text into its JSON objects, with nothing or white space between them. Checks only the braces, not
/// the JSON. Throws Error EINVAL that names the document.
[[nodiscard]] std::vector<std::string_view> split_documents(std::string_view text);

/// Reads exactly one R from standard input.
[[nodiscard]] rset::ResourceSet read_r(const Context& context);
/// Reads the R documents on standard input, at least this many. An error names the document, counted from 1.
[[nodiscard]] std::vector<rset::ResourceSet> read_several_r(const Context& context, std::size_t least);
/// Returns the union of the R documents on standard input, at least one; they may share resources. Throws as
/// read_several_r() and append() do.
[[nodiscard]] rset::ResourceSet read_union_of_r(const Context& context);

}  // namespace resourced::cli::commands
