#include "client/allocations.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "proto/topics/allocations.hpp"

namespace resourced::client {

namespace {

Connection::RequestId send(Connection& connection, std::string_view topic, const nlohmann::json& payload,
                           LedgerHandler handler, SendOptions options) {
  return connection.send(
      topic, payload,
      [handler = std::move(handler)](const Response& response) {
        handler(response.ok() ? std::nullopt : std::optional(response.error()));
      },
      options);
}

}  // namespace

Connection::RequestId alloc(Connection& connection, const std::vector<Allocation>& allocations,
                            LedgerHandler handler, SendOptions options) {
  std::vector<module::AllocationRequest> wanted;
  wanted.reserve(allocations.size());
  for (const Allocation& allocation : allocations)
    wanted.push_back({allocation.id, allocation.resources, allocation.expiration, allocation.note});
  return send(connection, "resource.alloc", proto::topics::encode_alloc(wanted), std::move(handler), options);
}

Connection::RequestId free(Connection& connection, std::vector<std::string> ids, LedgerHandler handler,
                           SendOptions options) {
  module::FreeCommand command;
  command.ids = std::move(ids);
  return send(connection, "resource.free", proto::topics::encode_free(command), std::move(handler), options);
}

Connection::RequestId free_part(Connection& connection, std::string id, const text::IdSet& ranks,
                                LedgerHandler handler, SendOptions options) {
  module::FreeCommand command;
  command.ids = {std::move(id)};
  command.ranks = ranks;
  return send(connection, "resource.free", proto::topics::encode_free(command), std::move(handler), options);
}

}  // namespace resourced::client
