#include "flux/keeper/relay.hpp"

#include <cerrno>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "core/error.hpp"
#include "proto/local_frame.hpp"
#include "proto/message.hpp"

namespace resourced::flux::keeper {
namespace {

using proto::Message;
using proto::MessageType;
namespace flag = proto::flag;

constexpr std::string_view shutdown_topic = "resource.shutdown";
/// The topic of the report of a rank about those below it, which is sent once.
constexpr std::string_view report_topic = "resource.topo-reduce";
/// Maximum number of kept reports, more than any tree of brokers has children.
constexpr std::size_t most_reports = 4096;
/// Maximum number of requests that wait for a service: more than the programs of an instance send at a time.
constexpr std::size_t most_waiting = 1024;
constexpr std::size_t most_waiting_bytes = std::size_t{16} << 20U;
constexpr std::size_t most_waiting_of_guests = 256;
/// Maximum size of a request of a guest. Also that of a cancellation, which has one number.
constexpr std::size_t longest_of_guests = 65536;
constexpr std::size_t most_streams_of_origin = 1024;
constexpr std::string_view disconnect_end = ".disconnect";
constexpr std::string_view cancel_end = "-cancel";
/// Matchtag of the keeper's own request, less than those of all generations.
constexpr std::uint32_t leaving_matchtag = 1;

bool is_owner(const auto& message) { return (message.rolemask & proto::role::owner) != 0; }

/// Whether the next service continues a request: it is a stream, and may be sent to a second service. Streams
/// of guests are not kept, as they could fill the memory.
bool is_stream(const link::Head& head) {
  if (!is_owner(head)) return false;
  if (head.topic == "resource.wait") return true;
  return head.has(flag::streaming) && (head.topic == "resource.acquire" || head.topic == "resource.journal");
}

}  // namespace

void Relay::from_broker(std::string_view frame) {
  const link::Head head = link::read_head(frame);
  switch (head.type) {
    case MessageType::request:
      request_from_broker(head, frame);
      return;
    case MessageType::response:
      if (link::generation_of(head.matchtag) == 0) {
        // A response to the only request of the keeper that has one.
        if (state_ == State::leaving) {
          for (const auto& [number, row] : rows_) refuse(row.request, ENOSYS, {});
          while (!rows_.empty()) erase(rows_.begin());
          say_status(fmt::format(R"({{"status":3,"errnum":{}}})", errnum_), 0);
          state_ = State::left;
        }
        return;
      }
      if (!is_served_ || link::generation_of(head.matchtag) != generation_) return;
      break;
    case MessageType::event:
    case MessageType::control:
      if (!is_served_) return;
      break;
  }
  link::append_link_message(for_service_, {{}, frame});
}

void Relay::request_from_broker(const link::Head& head, std::string_view frame) {
  if (head.topic == shutdown_topic && is_owner(head)) {
    if (state_ == State::leaving || state_ == State::left) return;
    state_ = State::stopping;
    if (!is_served_) leave(0);
  } else if (head.topic.ends_with(disconnect_end)) {
    note_disconnect(head);
  } else if (head.has(flag::noresponse)) {
    if (head.topic.ends_with(cancel_end)) note_cancel(head, frame);
    if (head.topic == report_topic && is_owner(head)) note_report(head, frame);
  } else if (!open_row(head, frame)) {
    return;
  }
  if (is_served_) link::append_link_message(for_service_, {{}, frame});
}

bool Relay::open_row(const link::Head& head, std::string_view frame) {
  const bool stream = is_stream(head);
  const auto refused = [&](int errnum, std::string_view text) {
    refuse(link::without_payload(head), errnum, text);
    return false;
  };
  // Refuse a second request with the same key: responses could belong to either.
  Key key{std::string(head.origin()), head.userid, head.matchtag};
  if (by_key_.contains(key)) return refused(EPROTO, "matchtag is in use");
  if (!is_served_ && !stream && !may_wait(head, frame.size()))
    return refused(EHOSTUNREACH, "the resource service is being started again");
  if (stream) {
    std::size_t& streams = streams_of_[key.origin];
    if (streams == most_streams_of_origin)
      return refused(EBUSY, fmt::format("{} streams are open already", streams));
    ++streams;
  }
  by_key_.emplace(std::move(key), ++last_row_);
  Row& row = rows_[last_row_];
  row.request = link::without_payload(head);
  row.is_stream = stream;
  if (stream || !is_served_) row.frame = frame;
  if (row.is_waiting()) add_waiting(row);
  return true;
}

bool Relay::may_wait(const link::Head& head, std::size_t size) const {
  if (waiting_.number >= most_waiting || size > most_waiting_bytes - waiting_.bytes) return false;
  return is_owner(head) || (size <= longest_of_guests && waiting_.of_guests < most_waiting_of_guests);
}

void Relay::add_waiting(const Row& row) {
  ++waiting_.number;
  waiting_.bytes += row.frame.size();
  if (!is_owner(row.request)) ++waiting_.of_guests;
}

void Relay::forget_waiting(const Row& row) {
  --waiting_.number;
  waiting_.bytes -= row.frame.size();
  if (!is_owner(row.request)) --waiting_.of_guests;
}

// Handles a disconnect request. Only the owner may disconnect requests of other users.
void Relay::note_disconnect(const link::Head& head) {
  const std::string_view origin = head.origin();
  for (auto key = by_key_.lower_bound({std::string(origin)});
       key != by_key_.end() && key->first.origin == origin;) {
    const auto row = rows_.find(key->second);
    ++key;
    if (is_owner(head) || head.userid == row->second.request.userid) erase(row);
  }
}

void Relay::note_cancel(const link::Head& head, std::string_view frame) {
  if (frame.size() > longest_of_guests) return;
  proto::Message cancel = link::without_payload(head);
  cancel.payload = std::make_shared<const std::string>(head.payload);
  cancel.flags |= flag::payload;
  try {
    const auto row = find(head, proto::parse_cancel(cancel));
    if (row != rows_.end() && !row->second.frame.empty()) row->second.cancel = frame;
  } catch (const Error&) {
    // Ignore an unreadable cancellation: the service also gets it, and cancels nothing either.
  }
}

void Relay::note_report(const link::Head& head, std::string_view frame) {
  const auto last = reports_.find(head.origin());
  if (last != reports_.end()) {
    last->second = frame;
  } else if (reports_.size() < most_reports) {
    reports_.emplace(head.origin(), frame);
  }
}

Relay::Rows::iterator Relay::find(const link::Head& head, std::uint32_t matchtag) {
  const auto number = by_key_.find({std::string(head.origin()), head.userid, matchtag});
  return number == by_key_.end() ? rows_.end() : rows_.find(number->second);
}

void Relay::erase(Rows::iterator row) {
  const std::string origin = row->second.origin();
  if (row->second.is_waiting()) forget_waiting(row->second);
  if (row->second.is_stream) {
    const auto streams = streams_of_.find(origin);
    if (--streams->second == 0) streams_of_.erase(streams);
  }
  by_key_.erase({origin, row->second.request.userid, row->second.request.matchtag});
  rows_.erase(row);
}

void Relay::from_service(const link::LinkMessage& message) {
  if (message.frame.empty()) {
    constexpr std::string_view failed = "failed ";
    if (message.mark == "running" && state_ == State::starting) {
      state_ = State::running;
      say_status(R"({"status":1})", 0);
    } else if (message.mark.starts_with(failed) && state_ == State::starting) {
      const std::string_view number = message.mark.substr(failed.size());
      errnum_ = EINVAL;
      std::from_chars(number.data(), number.data() + number.size(), errnum_);
    }
    return;
  }
  const link::Head head = link::read_head(message.frame);
  if (head.type == MessageType::response) {
    const auto row = find(head, head.matchtag);
    // The client has disconnected.
    if (row == rows_.end()) return;
    if (head.has(flag::noresponse)) {
      row->second.mark = message.mark;
      return;
    }
    if (!row->second.is_stream || head.aux != 0 || !head.has(flag::streaming)) {
      erase(row);
    } else {
      row->second.mark = message.mark;
    }
  } else if (head.type == MessageType::request && head.has(flag::streaming)) {
    streams_from_.emplace(head.topic.substr(0, head.topic.find('.')));
  }
  if (state_ != State::leaving && state_ != State::left) for_broker_.append(message.frame);
}

std::uint8_t Relay::next_generation() const noexcept {
  // Skip 0, the generation of the keeper's own matchtags, and 1, that of the first service.
  constexpr std::uint8_t second = 2;
  const auto next = static_cast<std::uint8_t>(generation_ + 1);
  return next == 0 ? second : next;
}

void Relay::refuse_cut(std::string_view frame) {
  const link::Head head = link::read_head(frame);
  if (head.type != MessageType::request || head.has(flag::noresponse) || state_ == State::left) return;
  refuse(link::without_payload(head), EMSGSIZE,
         fmt::format("{}: a message of more than {} bytes", head.topic, link::max_request));
}

void Relay::service_started() {
  is_served_ = true;
  generation_ = next_generation();
  for (const auto& [origin, report] : reports_) link::append_link_message(for_service_, {{}, report});
  waiting_ = {};
  for (auto& [number, row] : rows_) {
    link::append_link_message(for_service_, {row.mark, row.frame});
    if (!row.cancel.empty()) link::append_link_message(for_service_, {{}, row.cancel});
    if (row.is_stream) continue;
    // Drop the stored request: if this service dies, it may have carried the request out, so the next one
    // must not get it.
    row.frame = {};
    row.cancel = {};
  }
}

void Relay::service_ended(bool comes_again) {
  is_served_ = false;
  for_service_.clear();
  if (state_ == State::starting && (!comes_again || errnum_ != 0)) {
    leave(errnum_ != 0 ? errnum_ : EIO);
  } else if (state_ == State::stopping) {
    leave(0);
  } else if (state_ == State::running || state_ == State::starting) {
    for (auto row = rows_.begin(); row != rows_.end();) {
      const auto next = std::next(row);
      if (!row->second.is_stream) {
        refuse(row->second.request, EHOSTUNREACH, "the resource service has ended before it answered");
        erase(row);
      }
      row = next;
    }
    // End the streams that the dead service had from other modules.
    for (const std::string& service : streams_from_) {
      proto::append_local_frame(for_broker_, proto::make_request(service + std::string(disconnect_end), 0,
                                                                 nullptr, flag::noresponse));
    }
    streams_from_.clear();
  }
}

void Relay::refuse(const Message& request, int errnum, std::string_view text) {
  proto::append_local_frame(for_broker_, proto::make_error(request, errnum, text));
}

void Relay::say_status(std::string_view payload, std::uint32_t matchtag) {
  proto::append_local_frame(
      for_broker_, proto::make_request("module.status", matchtag, proto::make_payload(std::string(payload)),
                                       matchtag == 0 ? flag::noresponse : std::uint8_t{0}));
}

void Relay::leave(std::uint32_t errnum) {
  state_ = State::leaving;
  errnum_ = errnum;
  say_status(R"({"status":2})", leaving_matchtag);
}

}  // namespace resourced::flux::keeper
