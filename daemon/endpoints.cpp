#include "daemon/endpoints.hpp"

#include <cerrno>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/process.hpp"
#include "proto/defaults.hpp"

namespace resourced::daemon {
namespace {

// A name may stand for any address; only this one is taken to stay here.
bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

}  // namespace

std::vector<proto::Endpoint> endpoints(const Options& options, const config::Bus& bus) {
  std::vector<std::string> uris = options.listen.empty() ? bus.listen : options.listen;
  if (uris.empty()) uris = {proto::default_bus_uri(environment), proto::default_local_uri(environment)};
  std::vector<proto::Endpoint> endpoints;
  for (const std::string& uri : uris) {
    const auto& endpoint = endpoints.emplace_back(proto::parse_endpoint(uri, proto::EndpointUse::listen));
    const bool exposed = endpoint.scheme == proto::Scheme::tcp && !is_loopback(endpoint.host);
    if (exposed && bus.curve_key_file.empty() && !bus.insecure) {
      throw Error(EACCES,
                  fmt::format("cannot listen on {}: without bus.curve-key-file the network could read and "
                              "forge everything; bus.insecure = true if that is meant",
                              uri));
    }
  }
  return endpoints;
}

}  // namespace resourced::daemon
