#include "daemon/log/etcd/http.hpp"

namespace resourced::daemon::log::etcd {

namespace http = boost::beast::http;

http::request<http::string_body> message_of(const HttpRequest& request,
                                            const config::EtcdEndpoint& endpoint) {
  constexpr unsigned version = 11;
  http::request<http::string_body> message(http::verb::post, request.target, version, request.body);
  message.set(http::field::host, endpoint.authority());
  message.set(http::field::content_type, "application/json");
  if (!request.token.empty()) message.set(http::field::authorization, request.token);
  message.prepare_payload();
  return message;
}

}  // namespace resourced::daemon::log::etcd
