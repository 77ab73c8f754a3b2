// Key files: the CURVE key pair of a daemon or of a client, as `resourcectl keygen` writes it. One JSON
// object:
//   {"name": "login1", "public-key": Z85, "secret-key": Z85, "server-key": Z85}
// `server-key` is the public key of the daemon that a client trusts; a daemon's own file has none. The caller
// checks that the two keys are a pair, since there is no cryptography here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resourced::proto {

struct KeyFile {
  std::string name;
  std::string public_key;  ///< Z85, 40 characters, like the other two keys
  std::string secret_key;
  std::string server_key;  ///< empty if the file has none
};

inline constexpr std::size_t max_key_file = 4096;

/// Reads the text of a key file. Throws Error EINVAL `FILE: KEY: ...`, with a text that quotes no secret.
[[nodiscard]] KeyFile parse_key_file(std::string_view text, const std::string& file);

/// Returns the text of a key file, with a newline at the end.
[[nodiscard]] std::string format_key_file(const KeyFile& keys);

/// Reads a key file. Throws Error that names it: EACCES if anybody but its owner may read or write it, or if
/// its owner is neither the user of this process nor root; EINVAL if it is not a regular file or not a key
/// file; EFBIG beyond max_key_file bytes; otherwise the errno of the failed read.
[[nodiscard]] KeyFile load_key_file(const std::string& path);

/// Returns the public key in a key file: as load_key_file(), but without the check of the owner and the mode.
[[nodiscard]] std::string load_public_key(const std::string& path);

/// Makes a key file that only the user of this process may read, and waits until it is on disk. Throws Error
/// EEXIST if there is anything at this path, otherwise the errno of what failed, with nothing left behind.
void create_key_file(const std::string& path, const KeyFile& keys);

}  // namespace resourced::proto
