// Reading whole files of bounded size, with errors that name the file.
#pragma once

#include <cstddef>
#include <string>

namespace resourced::config {

/// The content of a regular file. Throws Error with the errno of the failed call, EISDIR for a directory,
/// EINVAL for anything else that is not a regular file, EFBIG for more than max_bytes; each text names the
/// file.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t max_bytes);

}  // namespace resourced::config
