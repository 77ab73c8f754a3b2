#include "daemon/instance/enclosing.hpp"

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/rset/operations.hpp"
#include "core/text/job_id.hpp"
#include "os/log.hpp"

namespace resourced::daemon::instance {

using rset::ResourceSet;

namespace {

bool repeats(const text::Hostlist& hosts) {
  std::unordered_set<std::string> known;
  bool found = false;
  hosts.for_each([&](std::string_view host) { found = !known.emplace(host).second || found; });
  return found;
}

}  // namespace

Enclosing::Enclosing(const std::string& uri, const std::string& job)
    : connection_(uri), job_(text::parse_job_id(job)) {}

ResourceSet Enclosing::read(bool watches) {
  if (watches) {
    watch();
  } else {
    ask_once();
  }
  constexpr client::Milliseconds often{1000};
  while (!resources_) {
    if (failure_) {
      throw Error(failure_->errnum(),
                  fmt::format("the enclosing instance does not tell R: {}", failure_->what()));
    }
    connection_.wait(often);
  }
  return *resources_;
}

void Enclosing::watch() {
  client::SendOptions streaming;
  streaming.streaming = true;
  connection_.send(
      "job-info.update-watch", {{"id", job_}, {"key", "R"}, {"flags", 0}},
      [this](const client::Response& response) { on_update(response); }, streaming);
}

void Enclosing::on_update(const client::Response& response) {
  if (!response.ok() && resources_) return ask_again(response.error().what());
  // An enclosing instance of an earlier version does not have this topic.
  if (!response.ok() && response.error().errnum() == ENOSYS) return ask_once();
  take([&] {
    ResourceSet resources = ResourceSet::from_json(response.payload().at("R"));
    // The first update of a stream is the present R.
    const bool is_new = resources_ && resources.expiration() != resources_->expiration();
    resources_ = std::move(resources);
    if (is_new && changed_) changed_(resources_->expiration());
  });
  pause_ = first_pause;
}

void Enclosing::ask_again(const std::string& why) {
  if (pause_ == first_pause)
    os::log_warning("the expiration of the job is not followed: {}; the enclosing instance is asked again",
                    why);
  connection_.after(pause_, [this] { watch(); });
  pause_ = std::min(2 * pause_, longest_pause);
}

void Enclosing::ask_once() {
  connection_.send(
      "job-info.lookup", {{"id", job_}, {"keys", {"R"}}, {"flags", 0}},
      [this](const client::Response& response) {
        take([&] { resources_ = ResourceSet::parse(response.payload().at("R").get<std::string>()); });
      });
}

void Enclosing::take(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    failure_ = error;
  } catch (const nlohmann::json::exception& error) {
    failure_ = Error(EPROTO, error.what());
  }
}

void Enclosing::follow(boost::asio::io_context& loop, std::function<void(WallTime)> changed) {
  changed_ = std::move(changed);
  watch_ = std::make_unique<os::Watch>(loop, connection_.fd(), [this] { connection_.process(); });
  watch_->look_again();
}

std::optional<ResourceSet> in_ranks_of(const ResourceSet& allocated, const text::Hostlist& brokers) {
  if (allocated.ranks().count() != brokers.size()) return std::nullopt;
  const ResourceSet resources = renumber_cores(allocated);
  if (repeats(brokers)) return remap(resources);
  try {
    return rerank(resources, brokers);
  } catch (const Error&) {
    // Map by position: a broker has another name for its host than R.
    return remap(resources);
  }
}

}  // namespace resourced::daemon::instance
