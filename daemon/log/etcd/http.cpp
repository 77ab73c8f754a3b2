#include "daemon/log/etcd/http.hpp"

#include <fmt/format.h>

namespace resourced::daemon::log::etcd {

std::string bytes_of(const HttpRequest& request, const config::EtcdEndpoint& endpoint) {
  std::string text = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
                                 request.target, endpoint.authority());
  if (!request.token.empty()) text += fmt::format("Authorization: {}\r\n", request.token);
  text += fmt::format("Content-Length: {}\r\n\r\n", request.body.size());
  return text += request.body;
}

}  // namespace resourced::daemon::log::etcd
