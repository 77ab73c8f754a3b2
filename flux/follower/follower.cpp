#include "flux/follower/follower.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flux/module/duties.hpp"
#include "flux/module/node.hpp"
#include "flux/module/reduction.hpp"
#include "flux/module/settings.hpp"
#include "proto/message.hpp"

namespace resourced::flux::follower {

using rset::ResourceSet;

namespace {

using module::Right;
using nlohmann::json;
using proto::Message;

[[noreturn]] void refuse_on_follower(const Message& request) {
  throw Error(ENOSYS, fmt::format("{} is only available on rank 0", request.topic));
}

[[noreturn]] void refuse_away_from_leader() { throw Error(EPROTO, "this RPC only works on rank 0"); }

/// Requires keys in a request. Throws Error EPROTO if one is missing.
void require(const Message& request, std::initializer_list<const char*> keys) {
  const json object = proto::parse_object(request);
  for (const char* key : keys) {
    if (!object.contains(key)) throw Error(EPROTO, fmt::format("{}: {}: missing", request.topic, key));
  }
}

class Follower {
 public:
  Follower(module::Channel& channel, const module::Welcome& welcome)
      : channel_(channel), welcome_(welcome), duties_(channel, welcome) {}

  void start() {
    settings_ = module::read_settings(welcome_.configuration, welcome_.rank, welcome_.hosts);
    bool noverify = module::read_arguments(welcome_).noverify || settings_.noverify;
    noverify = noverify || module::read_attribute(channel_, welcome_, "broker.recovery-mode").has_value();
    resources_ = settings_.resources;
    if (!resources_) ask_upstream();
    node_ = module::probe_node(welcome_.rank, settings_.norestrict);
    // Resources from the enclosing instance are verified only if the configuration asks for it.
    if (method_ == "job-info" && !settings_.is_verify_set) noverify = true;
    // Verify once, when the module is loaded: an operator may have undrained the rank since.
    if (resources_ && !noverify && channel_.is_first()) verify();
    const std::string text = module::read_attribute(channel_, welcome_, "tbon.descendants").value_or("0");
    std::uint32_t descendants = 0;
    std::from_chars(text.data(), text.data() + text.size(), descendants);
    reduction_.emplace(node_.resources, descendants + 1);
    add_topics();
    report();
  }

  void serve() {
    while (auto message = channel_.next()) {
      if (!duties_.take(*message)) return;
    }
  }

 private:
  /// Calls a service of another rank, and waits if that is being restarted.
  Message call(const std::string& topic, const json& payload, module::Channel::Target target) {
    constexpr int most_tries = 60;
    for (int tries = 1;; ++tries) {
      try {
        return channel_.call(topic, payload, target);
      } catch (const Error& error) {
        if (error.errnum() != EHOSTUNREACH || tries == most_tries) throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  void ask_upstream() {
    try {
      const Message answer = call("resource.get", nullptr, channel_.upstream());
      const json object = proto::parse_object(answer, most_values);
      method_ = object.at("method").get<std::string>();
      resources_ = ResourceSet::from_json(object.at("R"));
    } catch (const Error& error) {
      // R is not known upstream either: the nodes report the resources.
      if (error.errnum() != ENOENT) throw;
    }
  }

  void verify() {
    const std::string reason =
        module::mismatch(welcome_.rank, *resources_, node_.resources, settings_.verify);
    if (reason.empty()) return;
    channel_.log_error("draining: " + reason);
    (void)call("resource.drain",
               {{"targets", std::to_string(welcome_.rank)}, {"reason", reason}, {"mode", "update"}},
               module::Channel::leader());
  }

  void report() {
    if (reduction_->is_complete()) reduction_->report(channel_);
  }

  void add_topics() {
    duties_.add("get", Right::owner, [this](const Message& request) {
      if (!resources_) throw Error(ENOENT, "the resources are not known yet");
      channel_.respond(request, {{"R", resources_->to_json()}, {"method", method_}});
    });
    duties_.add("topo-get", Right::user, [this](const Message& request) {
      channel_.respond(request, std::make_shared<const std::string>(node_.xml + '\0'));
    });
    duties_.add("topo-reduce", Right::owner, [this](const Message& request) {
      if (reduction_->take(request, channel_)) report();
    });
    duties_.add("status", Right::user, [](const Message&) { refuse_away_from_leader(); });
    duties_.add("sched-status", Right::user, [](const Message&) { refuse_away_from_leader(); });
    duties_.add("monitor-force-down", Right::owner, [](const Message&) { refuse_away_from_leader(); });
    duties_.add("monitor-waitup", Right::owner, [](const Message& request) {
      require(request, {"up"});
      refuse_away_from_leader();
    });
    duties_.add("reload", Right::owner, [](const Message& request) {
      require(request, {"path", "xml", "force"});
      refuse_on_follower(request);
    });
    duties_.add("expiration-update", Right::owner,
                [](const Message& request) { refuse_on_follower(request); });
    duties_.add("disconnect", Right::user, [](const Message&) {});
    const auto reconfigure = [this](const Message& request) {
      // Check the configuration, which takes effect at the next start.
      (void)module::read_settings(proto::parse_object(request, most_values), welcome_.rank, welcome_.hosts);
      channel_.respond(request);
    };
    duties_.add("config-reload", Right::owner, reconfigure);
    duties_.add("config-update", Right::owner, reconfigure);
  }

  static constexpr std::size_t most_values = std::size_t{1} << 24U;

  module::Channel& channel_;
  const module::Welcome& welcome_;
  module::Duties duties_;
  module::Settings settings_;
  std::optional<ResourceSet> resources_;
  std::string method_ = "configuration";
  module::Node node_;
  std::optional<module::Reduction> reduction_;
};

}  // namespace

int run(module::Channel& channel, const module::Welcome& welcome) {
  Follower follower(channel, welcome);
  try {
    follower.start();
  } catch (const json::exception& error) {
    channel.log_error(error.what());
    channel.failed(EPROTO);
    return 1;
  } catch (const Error& error) {
    channel.log_error(error.what());
    channel.failed(error.errnum());
    return 1;
  }
  channel.running();
  follower.serve();
  return 0;
}

}  // namespace resourced::flux::follower
