#include "client/journal.hpp"

#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "client/backoff.hpp"
#include "core/json/reader.hpp"
#include "proto/allocation_json.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"
#include "proto/topics/journal.hpp"
#include "proto/topics/leader.hpp"

namespace resourced::client {

namespace {

constexpr BackoffLimits journal_pauses{Milliseconds(20), Milliseconds(1000)};

// Reads a response. The `scheduling` of an R keeps its numbers and the order of its keys.
nlohmann::json read_payload(std::string_view text) {
  auto read = json_text::read_json(text, proto::max_json_depth, json_text::JsonManners::lenient,
                                   std::numeric_limits<std::size_t>::max(), proto::resource_keys);
  if (auto* payload = std::get_if<nlohmann::json>(&read); payload != nullptr && payload->is_object())
    return std::move(*payload);
  throw Error(EPROTO, "resource.journal: payload is not a JSON object");
}

}  // namespace

JournalBatch::JournalBatch(std::shared_ptr<const nlohmann::json> payload) : payload_(std::move(payload)) {
  if (proto::topics::find_journal_events(*payload_) == nullptr)
    throw Error(EPROTO, "the daemon sent a journal response without events");
}

const nlohmann::json& JournalBatch::json() const { return *proto::topics::find_journal_events(*payload_); }

bool JournalBatch::empty() const { return json().empty(); }

std::vector<JournalEvent> JournalBatch::events() const {
  std::vector<JournalEvent> events;
  for (const nlohmann::json& entry : json()) {
    const proto::EventEntry event = proto::read_event_entry(entry);
    events.push_back({event.timestamp, std::string(event.name),
                      event.context == nullptr ? "" : json_text::text_of(*event.context)});
  }
  return events;
}

std::optional<std::uint64_t> JournalBatch::last() const {
  return proto::topics::find_journal_last(*payload_);
}

std::optional<rset::ResourceSet> JournalBatch::resources() const {
  const auto found = payload_->find("R");
  if (found == payload_->end()) return std::nullopt;
  return rset::ResourceSet::parse(json_text::text_of(*found));
}

// Shared with the handlers of its request and timer: a call of the observer may destroy the journal.
class Journal::Impl : public std::enable_shared_from_this<Journal::Impl> {
 public:
  Impl(Connection& connection, JournalObserver& observer, JournalOptions options)
      : connection_(connection), observer_(observer), options_(std::move(options)) {}

  void ask(bool waits) {
    SendOptions options;
    options.streaming = true;
    options.wait_for_daemon = waits;
    request_ = connection_.send(
        "resource.journal",
        proto::topics::encode_journal(
            {options_.since, options_.targets, options_.allocations, options_.after, options_.own}),
        [self = shared_from_this()](const Response& response) { self->receive(response); }, options);
  }

  [[nodiscard]] std::optional<std::uint64_t> after() const noexcept { return options_.after; }

  void close() {
    if (timer_) connection_.cancel_timer(*std::exchange(timer_, std::nullopt));
    if (!request_) return;
    const auto request = *std::exchange(request_, std::nullopt);
    connection_.cancel(request);
    connection_.forget(request);
  }

 private:
  void receive(const Response& response) {
    if (!response.ok()) return fail(response);
    std::optional<JournalBatch> batch;
    try {
      batch.emplace(std::make_shared<const nlohmann::json>(read_payload(response.text())));
    } catch (const Error& error) {
      close();
      return observer_.on_error(error);
    }
    pause_.reset();
    has_begun_ = true;
    is_lost_ = false;
    if (const auto last = batch->last()) options_.after = last;
    observer_.on_events(*batch);
  }

  void fail(const Response& response) {
    request_.reset();
    if (!may_continue(response)) return observer_.on_error(response.error());
    timer_ = connection_.after(pause_.next(), [self = shared_from_this()] {
      self->timer_.reset();
      self->ask(true);
    });
    if (!std::exchange(is_lost_, true)) observer_.on_lost(response.error());
  }

  [[nodiscard]] bool may_continue(const Response& response) const {
    // Without a cursor the events would come again. The leader of a cluster may end before it has answered.
    if (!options_.after && (!connection_.has_places() || has_begun_)) return false;
    switch (response.error().errnum()) {
      case ECONNRESET:
        return response.local();
      case ENODATA:
      case ECANCELED:
        return !response.local() && options_.follow_restart;
      case EOVERFLOW:
      case EAGAIN:
        return !response.local();
      case EHOSTUNREACH:
        // The daemon is a standby that does not have the last event yet.
        return proto::topics::is_of_standby(response.error());
      default:
        return false;
    }
  }

  Connection& connection_;
  JournalObserver& observer_;
  JournalOptions options_;
  /// Whether a response was received.
  bool has_begun_ = false;
  bool is_lost_ = false;
  std::optional<Connection::RequestId> request_;
  std::optional<Connection::TimerId> timer_;
  Backoff pause_{journal_pauses};
};

Journal::Journal(Connection& connection, JournalObserver& observer, JournalOptions options)
    : impl_(std::make_shared<Impl>(connection, observer, std::move(options))) {
  impl_->ask(false);
}
Journal::~Journal() { impl_->close(); }

std::optional<std::uint64_t> Journal::after() const noexcept { return impl_->after(); }
void Journal::close() { impl_->close(); }

}  // namespace resourced::client
