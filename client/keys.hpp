// Makes and loads the CURVE keys of a client. The format of key files is in proto/key_file.hpp.
#pragma once

#include <string>

#include "proto/key_file.hpp"

namespace resourced::client {

/// Returns a new key pair. Throws Error ENOTSUP if this libzmq was built without CURVE.
[[nodiscard]] proto::KeyFile make_keys(const std::string& name);

/// Loads a key file. Throws as load_key_file() does, and Error EINVAL if the file has no server-key, or a
/// public key that does not belong to the secret one.
[[nodiscard]] proto::KeyFile load_client_keys(const std::string& path);

}  // namespace resourced::client
