#include "daemon/service/large_requests.hpp"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace resourced::daemon::service {

using proto::ClientId;
using proto::Message;

namespace {

std::size_t size_of(const Message& request) {
  std::size_t size = sizeof(Message) + request.topic.size() + (request.payload ? request.payload->size() : 0);
  for (const std::string& route : request.routes) size += sizeof(std::string) + route.size();
  return size;
}

}  // namespace

bool LargeRequests::reads(ClientId client) const {
  const auto line = lines_.find(client);
  return line != lines_.end() && line->second.reading;
}

std::size_t LargeRequests::size(ClientId client) const {
  const auto line = lines_.find(client);
  return line == lines_.end() ? 0 : line->second.behind.size() + (line->second.reading ? 1 : 0);
}

void LargeRequests::count(const std::string& who, const Message& request) {
  const std::size_t size = size_of(request);
  const auto known = bytes_.find(who);
  const std::size_t before = known == bytes_.end() ? 0 : known->second;
  if (before + size > most_bytes) {
    throw Error(EAGAIN, fmt::format("{}: requests of {} with {} bytes wait already, and {} may wait; send it "
                                    "again once some of them are answered",
                                    request.topic, who, before, most_bytes));
  }
  bytes_[who] = before + size;
}

void LargeRequests::discount(const std::string& who, const Message& request) {
  const auto known = bytes_.find(who);
  known->second -= size_of(request);
  if (known->second == 0) bytes_.erase(known);
}

void LargeRequests::read(ClientId client, const Topic& topic, const Message& request) {
  peers::Clients::Client& sender = *clients_.find(client);
  worker_.start("to read a large request");
  // The line of a client that has changed its role keeps its first name.
  const std::string who = has(client) ? lines_.at(client).who : sender.principal.name;
  count(who, request);
  ++sender.waiting;
  const auto is_dropped = std::make_shared<std::atomic<bool>>(false);
  lines_.try_emplace(client, Line{who}).first->second.reading = is_dropped;
  worker_.run([this, client, who, &topic, request, is_dropped] {
    const auto content = *is_dropped ? nullptr : std::make_shared<Content>(topic.content_of(request));
    deferral_.post(topic.name, [this, client, who, request, is_dropped, content] {
      discount(who, request);
      if (*is_dropped) return;
      lines_.at(client).reading = nullptr;
      serve(client, request, content.get());
    });
  });
}

void LargeRequests::add(ClientId client, Message request) {
  Line& line = lines_.at(client);
  count(line.who, request);
  ++clients_.find(client)->waiting;
  line.behind.push_back(std::move(request));
}

void LargeRequests::serve_next(ClientId client) {
  const auto line = lines_.find(client);
  if (line == lines_.end() || line->second.reading) return;
  const Message request = std::move(line->second.behind.front());
  line->second.behind.pop_front();
  discount(line->second.who, request);
  serve(client, request, nullptr);
}

void LargeRequests::serve(ClientId client, const Message& request, Content* content) {
  peers::Clients::Client* const known = clients_.find(client);
  if (known == nullptr) {
    drop(client);
    return;
  }
  --known->waiting;
  owner_.on_turn(client, request, content);
  // The request may have ended its sender's connection, or is large and is being read now.
  const auto line = lines_.find(client);
  if (line == lines_.end() || line->second.reading) return;
  if (line->second.behind.empty()) {
    lines_.erase(line);
    return;
  }
  // Other clients have their turn before the next one.
  const Topic* const topic = Topics::find(line->second.behind.front().topic);
  deferral_.post(topic == nullptr ? "unknown" : topic->name, [this, client] { serve_next(client); });
}

bool LargeRequests::drop(ClientId client) {
  const auto line = lines_.find(client);
  if (line == lines_.end()) return false;
  const auto& [who, reading, behind] = line->second;
  if (reading) *reading = true;
  bool gives_back = false;
  for (const Message& request : behind) {
    discount(who, request);
    gives_back =
        gives_back || proto::is_disconnect(request.topic) || request.topic == "resource.acquire-cancel";
  }
  if (peers::Clients::Client* const known = clients_.find(client)) known->waiting -= size(client);
  lines_.erase(line);
  return gives_back;
}

void LargeRequests::drop_all() {
  while (!lines_.empty()) drop(lines_.begin()->first);
}

}  // namespace resourced::daemon::service
