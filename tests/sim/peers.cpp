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
