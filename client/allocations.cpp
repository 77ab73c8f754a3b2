#include "client/allocations.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "proto/topics/allocations.hpp"

namespace resourced::client {

Connection::RequestId alloc(Connection& connection, const std::vector<Allocation>& allocations,
                            Connection::Handler handler, SendOptions options) {
  std::vector<module::AllocationRequest> wanted;
  wanted.reserve(allocations.size());
  for (const Allocation& allocation : allocations)
    wanted.push_back({allocation.id, allocation.resources, allocation.expiration, allocation.note});
  return connection.send("resource.alloc", proto::topics::encode_alloc(wanted), std::move(handler), options);
}

Connection::RequestId free(Connection& connection, std::vector<std::string> ids, Connection::Handler handler,
                           SendOptions options, std::optional<std::string> partition) {
  module::FreeCommand command;
  command.ids = std::move(ids);
  command.partition = std::move(partition);
  return connection.send("resource.free", proto::topics::encode_free(command), std::move(handler), options);
}

Connection::RequestId free_part(Connection& connection, std::string id, const text::IdSet& ranks,
                                Connection::Handler handler, SendOptions options,
                                std::optional<std::string> partition) {
  module::FreeCommand command;
  command.ids = {std::move(id)};
  command.ranks = ranks;
  command.partition = std::move(partition);
  return connection.send("resource.free", proto::topics::encode_free(command), std::move(handler), options);
}

}  // namespace resourced::client
