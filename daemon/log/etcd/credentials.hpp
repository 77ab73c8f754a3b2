// The user, password and TLS files with which a daemon connects to etcd. A reload reads them again.
#pragma once

#include <string>

#include "config/cluster.hpp"

namespace resourced::daemon::log::etcd {

struct Credentials {
  /// Empty without a user; the password is empty then, too.
  std::string user;
  std::string password;
  /// Paths of PEM files, or empty. Each new connection reads the files.
  std::string certificate;
  std::string key;
  std::string ca_file;
};

/// Reads the password file, and checks the TLS files if an endpoint has TLS. Throws Error that names a file
/// that cannot be used.
[[nodiscard]] Credentials read_credentials(const config::Cluster& settings);

}  // namespace resourced::daemon::log::etcd
