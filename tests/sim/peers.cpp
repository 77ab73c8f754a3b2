#include "peers.hpp"

#include <algorithm>

#include "checks.hpp"

namespace resourced::sim {
namespace {

bool includes(const Reference::Ranks& all, const Reference::Ranks& some) {
  return std::ranges::includes(all, some);
}

Reference::Ranks ranks_of(const nlohmann::json& object, const char* key) {
  return parse_ranks(object.value(key, ""));
}

}  // namespace

daemon::transport::SendResult SimTransport::send(ClientId client, const proto::Message& message) {
  if (gone.contains(client)) return daemon::transport::SendResult::gone;
  if (stalled.contains(client)) return daemon::transport::SendResult::full;
  sent.emplace_back(client, message);
  return daemon::transport::SendResult::sent;
}

View::View(const nlohmann::json& first) : up(parse_ranks(first.at("up"))) {
  const nlohmann::json& execution = first.at("resources").at("execution");
  for (const nlohmann::json& group : execution.at("R_lite")) resources.merge(parse_ranks(group.at("rank")));
  for (const auto& [name, ranks] : property_sets(execution, "properties"))
    properties[name] = parse_ranks(ranks);
  expiration = execution.at("expiration");
  demand(includes(resources, up), "up, and not of the resources: " + first.dump());
}

void LedgerView::add(const nlohmann::json& resources, const Name& name) {
  Cores& cores = allocations[name];
  for (const nlohmann::json& group : resources.at("execution").at("R_lite")) {
    for (const unsigned rank : ranks_of(group, "rank"))
      for (const unsigned core : ranks_of(group.at("children"), "core")) cores.emplace(rank, core);
  }
}

void LedgerView::take(const nlohmann::json& allocation, const Name& name) {
  allocations[name].clear();
  add(allocation.at("R"), name);
}

void LedgerView::forget(const Name& name) {
  allocations.erase(name);
  notes.erase(name);
  expirations.erase(name);
  expired.erase(name);
}

// A scheduler that has set a time in the past is not told of it.
void LedgerView::expire(const Name& name, double expiration, double now) {
  if (expirations.contains(name) && expirations[name] == expiration) return;
  expired.erase(name);
  expirations.erase(name);
  if (expiration == 0) return;
  expirations[name] = expiration;
  if (expiration <= now) expired.insert(name);
}

void LedgerView::write(const Name& name, const std::string& note) {
  notes.erase(name);
  if (!note.empty()) notes.emplace(name, note);
}

void LedgerView::free(const nlohmann::json& entry, const std::string& partition) {
  const auto found = allocations.find({partition, entry.at("id")});
  if (found == allocations.end()) return;
  if (!entry.contains("ranks")) return forget(found->first);
  const Reference::Ranks freed = ranks_of(entry, "ranks");
  std::erase_if(found->second, [&](const auto& core) { return freed.contains(core.first); });
}

void LedgerView::apply(const nlohmann::json& response, double latest) {
  const nlohmann::json none = nlohmann::json::array();
  const auto tell_expired = [&](const Name& name) {
    demand(!expirations.contains(name) || expirations[name] <= latest,
           [&] { return "a scheduler is told of an expiration before its time: " + response.dump(); });
    if (expirations.contains(name)) expired.insert(name);
  };
  for (const nlohmann::json& entry : response.value("freed", none)) free(entry, entry.at("partition"));
  for (const nlohmann::json& entry : response.value("allocations", none)) {
    const Name name{entry.at("partition"), entry.at("id")};
    forget(name);
    take(entry, name);
    write(name, entry.value("note", ""));
    if (entry.contains("expiration")) expirations[name] = entry.at("expiration");
    if (entry.value("expired", false)) tell_expired(name);
  }
  for (const nlohmann::json& entry : response.value("expired", none))
    tell_expired({entry.at("partition"), entry.at("id")});
}

void LedgerView::apply_own(const nlohmann::json& request, const std::string& own, double asked) {
  const nlohmann::json none = nlohmann::json::array();
  for (const nlohmann::json& entry : request.value("free", none)) free(entry, entry.value("partition", own));
  for (const nlohmann::json& entry : request.value("allocations", none)) apply_own(entry, own, asked);
  const std::string partition = request.value("partition", own);
  if (!request.contains("id")) return;
  if (!request.contains("R") && !request.contains("note")) return free(request, partition);
  const Name name{partition, request.at("id")};
  if (request.contains("R")) {
    take(request, name);
    write(name, request.value("note", ""));
    return expire(name, request.value("expiration", 0.0), asked);
  }
  if (request.contains("add")) add(request.at("add"), name);
  write(name, request.at("note"));
  if (request.contains("expiration")) expire(name, request.at("expiration"), asked);
}

void View::apply(const nlohmann::json& delta) {
  const Reference::Ranks came = ranks_of(delta, "up");
  const Reference::Ranks went = ranks_of(delta, "down");
  const Reference::Ranks left = ranks_of(delta, "shrink");
  demand(!delta.empty(), "a change that is empty");
  demand(includes(resources, came) && includes(resources, went),
         "a change of targets that are not this scheduler's: " + delta.dump());
  demand(includes(went, left), "shrink without down: " + delta.dump());
  for (const unsigned rank : came) demand(up.insert(rank).second, "up, and was already: " + delta.dump());
  // A target that leaves for good is listed in `down` even if it was down (RFC 28).
  for (const unsigned rank : went)
    demand(up.erase(rank) == 1 || left.contains(rank), "down, and was already: " + delta.dump());
  for (const unsigned rank : left) {
    resources.erase(rank);
    for (auto& [name, ranks] : properties) ranks.erase(rank);
  }
  for (const auto& [name, ranks] : property_sets(delta, "property-add"))
    properties[name].merge(parse_ranks(ranks));
  for (const auto& [name, ranks] : property_sets(delta, "property-remove")) {
    for (const unsigned rank : parse_ranks(ranks)) properties[name].erase(rank);
  }
  std::erase_if(properties, [](const auto& property) { return property.second.empty(); });
  if (delta.contains("expiration")) expiration = delta.at("expiration");
}

}  // namespace resourced::sim
