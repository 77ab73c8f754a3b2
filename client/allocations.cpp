#include "client/allocations.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "client/requests.hpp"
#include "proto/topics/allocations.hpp"

namespace resourced::client {

LedgerRequest request_of(const LedgerChange& wanted, const std::optional<std::string>& partition) {
  module::LedgerCommand command;
  for (const Freed& freed : wanted.frees) command.frees.push_back({freed.id, freed.partition, freed.ranks});
  for (const Allocation& allocation : wanted.allocations)
    command.allocations.push_back(
        {allocation.id, allocation.resources, allocation.expiration, allocation.note, partition});
  command.repeat = wanted.repeat;
  const bool frees_only = command.allocations.empty();
  return {frees_only ? "resource.free" : "resource.alloc",
          frees_only ? proto::topics::encode_free(command) : proto::topics::encode_alloc(command)};
}

LedgerRequest request_of(const AllocationUpdate& wanted) {
  const module::UpdateRequest request{wanted.id, wanted.partition, wanted.expiration, wanted.note,
                                      wanted.add};
  return {"resource.alloc-update", proto::topics::encode_alloc_update(request, wanted.repeat)};
}

Connection::RequestId change(Connection& connection, const LedgerChange& wanted, Connection::Handler handler,
                             SendOptions options) {
  const LedgerRequest request = request_of(wanted);
  return connection.send(request.topic, request.payload, std::move(handler), options);
}

Connection::RequestId update(Connection& connection, const AllocationUpdate& wanted,
                             Connection::Handler handler, SendOptions options) {
  const LedgerRequest request = request_of(wanted);
  return connection.send(request.topic, request.payload, std::move(handler), options);
}

Connection::RequestId alloc(Connection& connection, const std::vector<Allocation>& allocations,
                            Connection::Handler handler, SendOptions options) {
  return change(connection, {.allocations = allocations}, std::move(handler), options);
}

Connection::RequestId free(Connection& connection, const std::vector<std::string>& ids,
                           Connection::Handler handler, SendOptions options,
                           const std::optional<std::string>& partition) {
  LedgerChange wanted;
  for (const std::string& id : ids) wanted.frees.push_back({id, partition});
  return change(connection, wanted, std::move(handler), options);
}

Connection::RequestId free_part(Connection& connection, std::string id, const text::IdSet& ranks,
                                Connection::Handler handler, SendOptions options,
                                std::optional<std::string> partition) {
  return change(connection, {.frees = {{std::move(id), std::move(partition), ranks}}}, std::move(handler),
                options);
}

}  // namespace resourced::client
