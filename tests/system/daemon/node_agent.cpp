#include "node_agent.hpp"

#include <csignal>
#include <stdexcept>

#include <fmt/format.h>

namespace resourced::e2e {
namespace {

// Redirects the log to standard output, which the harness reads line by line. exec keeps the process id.
std::vector<std::string> command(const std::string& uri, const std::string& hostname,
                                 const std::vector<std::string>& more) {
  std::vector<std::string> words{"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh", RESOURCED_BIN "/resource-agent"};
  words.insert(words.end(), {"--uri", uri, "--hostname", hostname});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

NodeAgent::NodeAgent(const std::string& uri, const std::string& hostname,
                     const std::vector<std::string>& more,
                     const std::vector<std::pair<std::string, std::string>>& environment)
    : process_(command(uri, hostname, more), {environment}) {}

void NodeAgent::expect_log(const std::string& text) {
  const Deadline deadline;
  std::string log;
  try {
    for (std::string line; line.find(text) == std::string::npos;) {
      line = process_.expect_line(deadline);
      log += line + '\n';
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("no agent said \"{}\" but\n{}{}", text, log, error.what()));
  }
}

int NodeAgent::terminate() {
  process_.signal(SIGTERM);
  return process_.wait();
}

const SchedulerView& WatchingScheduler::until(const std::function<bool(const SchedulerView&)>& reached) {
  const Deadline deadline;
  while (heard_ == 0 || !reached(view_)) take(client_.receive(stream_, deadline).json());
  return view_;
}

void WatchingScheduler::take(const nlohmann::json& response) {
  if (heard_++ == 0) resources_ = response.at("resources");
  view_.apply(response);
}

void WatchingScheduler::until_up(const std::set<unsigned>& targets) {
  until([&](const SchedulerView& view) { return view.up() == targets; });
}

void WatchingScheduler::until_has(unsigned target) {
  until([&](const SchedulerView& view) { return view.up().contains(target); });
}

void WatchingScheduler::until_lacks(unsigned target) {
  until([&](const SchedulerView& view) { return !view.up().contains(target); });
}

const SchedulerView& WatchingScheduler::settle() {
  for (const RawResponse& response : client_.settle()) take(response.json());
  return view_;
}

bool WatchingScheduler::has_heard() {
  settle();
  return heard_ > 0;
}

EventFollower::EventFollower(const std::string& uri)
    : client_(uri),
      stream_(client_.send("resource.journal", nlohmann::json::object(), wire::flag_streaming)) {}

nlohmann::json EventFollower::expect(const std::string& name) {
  const Deadline deadline;
  while (true) {
    while (events_.empty()) {
      const nlohmann::json response = client_.receive(stream_, deadline).json();
      for (const auto& event : response.at("events")) events_.push_back(event);
    }
    nlohmann::json event = std::move(events_.front());
    events_.pop_front();
    if (event.at("name") == name) return event;
  }
}

std::vector<nlohmann::json> events_named(RawClient& client, const std::string& name) {
  std::vector<nlohmann::json> events = history(client);
  std::erase_if(events, [&](const nlohmann::json& event) { return event.at("name") != name; });
  return events;
}

nlohmann::json hello(const std::string& hostname, const std::string& cores, const std::string& gpus,
                     const std::string& found_host) {
  nlohmann::json children{{"core", cores}};
  if (!gpus.empty()) children["gpu"] = gpus;
  return {{"hostname", hostname},
          {"R",
           {{"version", 1},
            {"execution",
             {{"R_lite", {{{"rank", "0"}, {"children", children}}}},
              {"nodelist", {found_host.empty() ? hostname : found_host}}}}}}};
}

}  // namespace resourced::e2e
