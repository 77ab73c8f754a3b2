// The settings of [cluster]: the etcd that has the log of several daemons, and the name of this daemon among
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.hpp"

namespace resourced::config {

/// Values of [cluster]. Paths are absolute, as those of Resource.
struct Cluster {
  std::vector<std::string> etcd;  ///< texts of parse_etcd_endpoint(); empty without a cluster
  std::string name;               ///< "" when not set: the name of this host
  std::string prefix = "/resourced/";
  Seconds lease_ttl{3};
  Seconds takeover_grace{60};
  std::uint64_t snapshot_events = 10000;
  std::string advertise;  ///< "" when not set: the first endpoint
  std::string user;       ///< "" when not set; set exactly if `password_file` is
  std::string password_file;
  std::string certificate;  ///< a PEM file with the chain; set exactly if `key` is
  std::string key;
  std::string ca_file;  ///< "" when not set: the certificates that this system trusts
  friend bool operator==(const Cluster&, const Cluster&) = default;

  [[nodiscard]] bool is_set() const noexcept { return !etcd.empty(); }
};

struct EtcdEndpoint {
  bool is_tls = false;
  std::string host;  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;
  friend bool operator==(const EtcdEndpoint&, const EtcdEndpoint&) = default;

  /// Returns HOST:PORT, with brackets around an IPv6 address.
  [[nodiscard]] std::string authority() const;
};

/// Reads `http://HOST:PORT` or `https://HOST:PORT`; the default port is 2379. Throws Error EINVAL that quotes
/// the text.
[[nodiscard]] EtcdEndpoint parse_etcd_endpoint(std::string_view text);

}  // namespace resourced::config
