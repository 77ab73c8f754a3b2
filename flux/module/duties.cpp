#include "flux/module/duties.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "core/error.hpp"
#include "proto/message.hpp"

namespace resourced::flux::module {
namespace {

using nlohmann::json;
using proto::Message;

constexpr std::string_view service = "resource.";
/// Maximum size in bytes of payloads of guests: that of a ping, which is sent back, and others.
constexpr std::size_t longest_ping_of_guests = 65536;
constexpr std::size_t longest_of_guests = 16384;

bool may(std::uint32_t rolemask, Right right) {
  switch (right) {
    case Right::owner:
      return (rolemask & proto::role::owner) != 0;
    case Right::user:
      return (rolemask & (proto::role::owner | proto::role::user)) != 0;
    case Right::anybody:
      break;
  }
  return true;
}

json to_json(const Channel::Counts& counts) {
  return {{"request", counts.request},
          {"response", counts.response},
          {"event", counts.event},
          {"control", counts.control}};
}

/// Returns the text with which Flux's own modules refuse a payload that cannot be read. Without a text their
/// clients show that of the errno.
std::string malformed_text(std::string_view topic) {
  if (topic == "resource.config-reload") return "error unpacking config-reload request";
  if (topic == "resource.config-update") return "Failed to parse resource.config-update request";
  return {};
}

/// Returns the route of the request from its origin, each hop by the first characters of its uuid.
std::string way(const Message& request, const std::string& uuid) {
  constexpr std::size_t shown = 8;
  std::string text;
  for (auto hop = request.routes.rbegin(); hop != request.routes.rend(); ++hop)
    text += hop->substr(0, shown) + '!';
  return text + uuid.substr(0, shown);
}

json usage(const Message& request) {
  const json asked = proto::parse_optional_object(request);
  const std::string who = asked.value("who", std::string("self"));
  rusage used{};
  const int whose = who == "children" ? RUSAGE_CHILDREN : who == "thread" ? RUSAGE_THREAD : RUSAGE_SELF;
  if (::getrusage(whose, &used) != 0) throw Error(errno, "getrusage");
  const auto seconds = [](const timeval& time) {
    constexpr double micro = 1e-6;
    return static_cast<double>(time.tv_sec) + micro * static_cast<double>(time.tv_usec);
  };
  return {{"utime", seconds(used.ru_utime)}, {"stime", seconds(used.ru_stime)}, {"maxrss", used.ru_maxrss},
          {"ixrss", used.ru_ixrss},          {"idrss", used.ru_idrss},          {"isrss", used.ru_isrss},
          {"minflt", used.ru_minflt},        {"majflt", used.ru_majflt},        {"nswap", used.ru_nswap},
          {"inblock", used.ru_inblock},      {"oublock", used.ru_oublock},      {"msgsnd", used.ru_msgsnd},
          {"msgrcv", used.ru_msgrcv},        {"nsignals", used.ru_nsignals},    {"nvcsw", used.ru_nvcsw},
          {"nivcsw", used.ru_nivcsw}};
}

}  // namespace

Duties::Duties(Channel& channel, const Welcome& welcome) : channel_(channel), welcome_(welcome) {
  const auto ping = [this](const Message& request) {
    json object = proto::parse_object(request);
    object["route"] = way(request, welcome_.uuid);
    object["userid"] = request.userid;
    object["rolemask"] = request.rolemask;
    object["rank"] = welcome_.rank;
    channel_.respond(request, object);
  };
  add("ping", Right::user, ping, longest_ping_of_guests);
  const auto counts = [this](const Message& request) {
    channel_.respond(request, {{"tx", to_json(channel_.sent())}, {"rx", to_json(channel_.received())}});
  };
  add("stats-get", Right::anybody, counts, longest_of_guests);
  // This is also called for an event, which gets no response.
  add("stats-clear", Right::owner, [this](const Message& request) {
    channel_.clear_counts();
    if (request.type == proto::MessageType::request) channel_.respond(request);
  });
  // The owner's request ends the module in take(), so this is not reached.
  add("shutdown", Right::owner, [](const Message&) {});
  add(
      "rusage", Right::user, [this](const Message& request) { channel_.respond(request, usage(request)); },
      longest_of_guests);
  add("debug", Right::owner, [this](const Message& request) { debug(request); });
}

void Duties::add(std::string method, Right right, Answer answer, std::size_t longest) {
  methods_.insert_or_assign(std::move(method), Method{right, std::move(answer), longest});
}

bool Duties::take(const Message& message) {
  if (message.topic == "resource.shutdown" && may(message.rolemask, Right::owner)) return false;
  const auto refuse = [&](const Error& error) {
    if (message.type == proto::MessageType::request) channel_.refuse(message, error);
  };
  try {
    answer(message);
  } catch (const json::exception&) {
    refuse(Error(EPROTO, malformed_text(message.topic)));
  } catch (const Error& error) {
    // The errors of a payload begin with the topic.
    const bool is_malformed =
        error.errnum() == EPROTO && std::string_view(error.what()).starts_with(message.topic);
    refuse(is_malformed ? Error(EPROTO, malformed_text(message.topic)) : error);
  }
  return true;
}

const Duties::Method* Duties::find(std::string_view topic) const {
  if (!topic.starts_with(service)) return nullptr;
  const auto method = methods_.find(topic.substr(service.size()));
  return method == methods_.end() ? nullptr : &method->second;
}

bool Duties::serves(std::string_view topic) const { return find(topic) != nullptr; }

void Duties::answer(const Message& request) {
  const Method* method = find(request.topic);
  if (method == nullptr) throw Error(ENOSYS, fmt::format("Unknown service method '{}'", request.topic));
  if (!may(request.rolemask, method->right)) {
    throw Error(EPERM, method->right == Right::owner ? "Request requires owner credentials"
                                                     : "Request rejected due to insufficient privilege");
  }
  const std::size_t size = request.payload ? request.payload->size() : 0;
  if (size > method->longest && !may(request.rolemask, Right::owner)) {
    throw Error(EMSGSIZE,
                fmt::format("{}: a payload of {} bytes, more than {}", request.topic, size, method->longest));
  }
  method->answer(request);
}

void Duties::debug(const Message& request) {
  const json object = proto::parse_object(request);
  const auto flags = object.at("flags").get<std::int64_t>();
  const auto operation = object.at("op").get<std::string>();
  if (operation == "setbit") {
    debug_flags_ |= flags;
  } else if (operation == "clrbit") {
    debug_flags_ &= ~flags;
  } else if (operation == "set") {
    debug_flags_ = flags;
  } else if (operation == "clr") {
    debug_flags_ = 0;
  } else {
    throw Error(EPROTO, fmt::format("{}: unknown op: {}", request.topic, operation));
  }
  channel_.respond(request, {{"flags", debug_flags_}});
}

}  // namespace resourced::flux::module
