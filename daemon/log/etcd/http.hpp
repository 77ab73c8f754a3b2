// A request to etcd's JSON gateway, and its answer.
#pragma once

#include <string>

#include "config/cluster.hpp"

namespace resourced::daemon::log::etcd {

struct HttpRequest {
  std::string target;
  std::string body;
  /// For the header Authorization; empty for none.
  std::string token;
};

struct HttpAnswer {
  /// 0 if there was no answer: `why` says the reason.
  unsigned status = 0;
  std::string body;
  std::string why;
  /// Bytes of the request may have reached the endpoint.
  bool was_sent = false;
};

/// The request as it is sent to the endpoint.
[[nodiscard]] std::string bytes_of(const HttpRequest& request, const config::EtcdEndpoint& endpoint);

}  // namespace resourced::daemon::log::etcd
