// CURVE keys, see keys.hpp.
#include "client/keys.hpp"

#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <zmq.h>

#include "core/error.hpp"
#include "core/text/z85.hpp"

namespace resourced::client {

namespace {

/// The text of a key, with the NUL that libzmq adds.
using KeyText = std::array<char, text::z85_key_size + 1>;

}  // namespace

proto::KeyFile make_keys(const std::string& name) {
  KeyText public_key{};
  KeyText secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    throw Error(errno, fmt::format("cannot make keys: {}", zmq_strerror(errno)));
  }
  return {name, public_key.data(), secret_key.data(), {}};
}

proto::KeyFile load_client_keys(const std::string& path) {
  auto keys = proto::load_key_file(path);
  if (keys.server_key.empty()) {
    throw Error(EINVAL, fmt::format("{}: no server-key: the public key of the daemon is needed to connect "
                                    "(resourcectl keygen --server-key)",
                                    path));
  }
  KeyText public_key{};
  if (zmq_curve_public(public_key.data(), keys.secret_key.c_str()) != 0) {
    throw Error(errno, fmt::format("{}: {}", path, zmq_strerror(errno)));
  }
  if (keys.public_key != public_key.data()) {
    throw Error(EINVAL, fmt::format("{}: public-key and secret-key are not a pair", path));
  }
  return keys;
}

}  // namespace resourced::client
