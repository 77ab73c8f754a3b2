#include "fixture.hpp"

#include <algorithm>
#include <stdexcept>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

namespace resourced::e2e {
namespace {

unsigned number(std::string_view digits) { return static_cast<unsigned>(std::stoul(std::string(digits))); }

bool includes(const std::set<unsigned>& all, const std::set<unsigned>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool disjoint(const std::set<unsigned>& one, const std::set<unsigned>& other) {
  return std::none_of(one.begin(), one.end(), [&](unsigned id) { return other.contains(id); });
}

}  // namespace

void Cluster::drain(const std::string& targets, const std::string& reason) {
  const auto response = operator_client.call("resource.drain", {{"targets", targets}, {"reason", reason}});
  if (response.errnum != 0) throw std::runtime_error("drain " + targets + ": " + response.text());
}

void Cluster::undrain(const std::string& targets) {
  const auto response = operator_client.call("resource.undrain", {{"targets", targets}});
  if (response.errnum != 0) throw std::runtime_error("undrain " + targets + ": " + response.text());
}

nlohmann::json Cluster::status() { return operator_client.call("resource.status").json(); }

std::set<unsigned> ids(std::string_view idset) {
  std::set<unsigned> result;
  while (!idset.empty()) {
    const std::string_view item = idset.substr(0, idset.find(','));
    idset.remove_prefix(std::min(idset.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const unsigned first = number(item.substr(0, dash));
    const unsigned last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    for (unsigned id = first; id <= last; ++id) result.insert(id);
  }
  return result;
}

std::vector<nlohmann::json> history(RawClient& client, const nlohmann::json& payload) {
  const std::uint32_t stream = client.send("resource.journal", payload, wire::flag_streaming);
  std::vector<nlohmann::json> events;
  while (true) {
    const nlohmann::json response = client.receive(stream).json();
    const nlohmann::json& batch = response.at("events");
    if (batch.empty()) break;
    events.insert(events.end(), batch.begin(), batch.end());
  }
  client.send("resource.journal-cancel", {{"matchtag", stream}}, wire::flag_noresponse);
  while (client.receive(stream).errnum == 0) {
  }
  return events;
}

std::set<unsigned> drained_ranks(const nlohmann::json& status) {
  std::set<unsigned> drained;
  for (const auto& [targets, why] : status.at("drain").items()) drained.merge(ids(targets));
  return drained;
}

void SchedulerView::apply(const nlohmann::json& response) {
  CAPTURE(response.dump());
  if (first_) {
    first_ = false;
    for (const auto& entry : response.at("resources").at("execution").at("R_lite")) {
      targets_.merge(ids(entry.at("rank").get<std::string>()));
    }
    up_ = ids(response.at("up").get<std::string>());
    CHECK(includes(targets_, up_));
    return;
  }
  REQUIRE_FALSE(response.empty());
  const auto up = ids(response.value("up", ""));
  const auto down = ids(response.value("down", ""));
  CHECK(disjoint(up, down));
  CHECK(disjoint(up, up_));
  CHECK(includes(targets_, up));
  CHECK(includes(targets_, down));
  // A target that leaves for good is in `down`, too, whether it was up or not.
  const auto shrink = ids(response.value("shrink", ""));
  CHECK(includes(down, shrink));
  for (const unsigned id : down) {
    CHECK((up_.contains(id) || shrink.contains(id)));
    up_.erase(id);
  }
  up_.insert(up.begin(), up.end());
  for (const unsigned id : shrink) targets_.erase(id);
}

Outcome import_log(const TempDir& dir, const std::string& config, const std::filesystem::path& log) {
  return Process(resourced_command({"--config", dir.write("resourced.toml", config), "--state", dir / "state",
                                    "--import", log}))
      .finish(Deadline(std::chrono::minutes(2)));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string own_name() {
  const passwd* const account = getpwuid(geteuid());
  const std::string id = fmt::format("uid {}", geteuid());
  return account == nullptr ? id : fmt::format("{} ({})", account->pw_name, id);
}

void until_logged(const Daemon& daemon, const std::string& text) {
  const Deadline deadline;
  while (daemon.log().find(text) == std::string::npos) {
    if (deadline.passed()) throw Timeout(fmt::format("the log does not have {}: {}", text, daemon.log()));
  }
}

double milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace resourced::e2e
