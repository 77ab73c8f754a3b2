#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <string.h>
#include <zmq.h>

#include "bench/load/bus_client.hpp"
#include "bench/load/crowd.hpp"

namespace resourced::bench {
namespace {

/// A response is this text, events separated by commas, and `end` with a number and a bracket.
constexpr std::string_view begin = R"({"events":[)";
constexpr std::string_view end = R"(],"last":)";

/// Returns the number of bytes of the events, each with the comma or bracket after it.
std::size_t bytes_of_events(std::string_view payload) { return payload.rfind(end) - begin.size() + 1; }

std::uint64_t events_in(std::string_view payload) {
  constexpr std::string_view mark = R"({"timestamp":)";
  std::uint64_t count = 0;
  while (const void* found = ::memmem(payload.data(), payload.size(), mark.data(), mark.size())) {
    ++count;
    payload.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(found) - payload.data()) +
                          mark.size());
  }
  return count;
}

class Consumers {
 public:
  Consumers(const std::string& uri, std::size_t count) : read_(count) {
    // Use a short queue, so that unread messages stay in the daemon, whose memory is measured.
    constexpr int receive_hwm = 4;
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<BusClient>(uri, receive_hwm));
      items_.push_back({clients_.back()->socket(), 0, ZMQ_POLLIN, 0});
      clients_.back()->open("resource.journal");
    }
  }

  void read_past() {
    std::size_t live = 0;
    for_each_payload([&](std::size_t /*consumer*/, std::string_view payload) {
      live += payload.substr(begin.size()).starts_with(end) ? 1 : 0;
      return live < clients_.size();
    });
  }

  /// Reads live events. The first consumer counts its events; the others must have read the same number of
  /// bytes, in any division into messages.
  void read_live(std::uint64_t events) {
    std::uint64_t counted = 0;
    std::size_t complete = 0;
    for_each_payload([&](std::size_t consumer, std::string_view payload) {
      read_[consumer] += bytes_of_events(payload);
      if (consumer == 0 && counted < events) {
        counted += events_in(payload);
        if (counted < events) return true;
        for (const std::uint64_t bytes : read_) complete += bytes == read_[0] ? 1U : 0U;
      } else if (counted >= events && read_[consumer] == read_[0]) {
        ++complete;
      }
      return complete < clients_.size();
    });
    for (const std::uint64_t bytes : read_) {
      if (bytes != read_[0]) throw std::runtime_error("consumers have read different events");
    }
    if (counted != events) throw std::runtime_error(fmt::format("{} events instead of {}", counted, events));
  }

 private:
  /// Calls `take` with each payload until it returns false.
  template <class Take>
  void for_each_payload(Take take) {
    while (true) {
      if (::zmq_poll(items_.data(), static_cast<int>(items_.size()), 60000) <= 0) {
        throw std::runtime_error("nothing came for a minute");
      }
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].revents == 0) continue;
        while (const auto answer = clients_[i]->receive_now()) {
          if (answer->errnum != 0) throw std::runtime_error(std::string(answer->payload));
          if (!take(i, answer->payload)) return;
        }
      }
    }
  }

  std::vector<std::unique_ptr<BusClient>> clients_;
  std::vector<zmq_pollitem_t> items_;
  std::vector<std::uint64_t> read_;
};

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

}  // namespace

void consume(const std::string& uri, std::size_t count, std::uint64_t events) {
  // Give the consumers only the processor time that the daemon leaves: in practice they run on other
  // machines.
  const sched_param none{};
  if (::sched_setscheduler(0, SCHED_IDLE, &none) != 0)
    throw std::runtime_error("cannot lower the priority of this process");
  Consumers consumers(uri, count);
  consumers.read_past();
  say("ready");
  consumers.read_live(events);
  say("done");
}

}  // namespace resourced::bench
