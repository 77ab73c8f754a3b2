// The implementation of an acquisition, see acquisition.hpp.
#include "client/acquisition.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/backoff.hpp"
#include "client/repeatable.hpp"
#include "client/wakeup.hpp"
#include "core/error.hpp"
#include "core/module/delta.hpp"
#include "proto/topics/acquire.hpp"

namespace resourced::client {

using text::IdSet;

/// The view of a scheduler: its inventory and the available targets in it.
using Picture = proto::topics::Acquired;

namespace {

/// Returns 128 random bits as hexadecimal digits (AcquireRequest::holder).
std::string random_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

void check_known(std::string_view key, const IdSet& ranks, const IdSet& known) {
  if (known.includes(ranks)) return;
  throw Error(EPROTO, fmt::format("resource.acquire: {}: targets {} are not among the resources", key,
                                  (ranks - known).encode()));
}

Allocation public_form(proto::topics::ListedAllocation&& listed) {
  return {std::move(listed.id),
          std::move(listed.resources),
          listed.expiration,
          std::move(listed.note),
          std::move(listed.partition).value_or(""),
          std::move(listed.absent),
          listed.expired};
}

std::vector<Allocation> public_forms(std::vector<proto::topics::ListedAllocation>&& listed) {
  std::vector<Allocation> allocations;
  allocations.reserve(listed.size());
  for (proto::topics::ListedAllocation& one : listed) allocations.push_back(public_form(std::move(one)));
  return allocations;
}

bool has_cause(const module::Delta& change) {
  const module::DownCauses& cause = change.cause;
  return !(cause.drained.empty() && cause.offline.empty() && cause.torpid.empty() && cause.excluded.empty());
}

DownCauses public_form(module::DownCauses&& cause) {
  return {std::move(cause.drained), std::move(cause.offline), std::move(cause.torpid),
          std::move(cause.excluded)};
}

std::vector<ScheduledDrain> public_forms(const module::ScheduledDrains& drains) {
  std::vector<ScheduledDrain> scheduled;
  scheduled.reserve(drains.size());
  for (const auto& [drain, ranks] : drains)
    scheduled.push_back({ranks, drain.timestamp, drain.until, drain.reason});
  return scheduled;
}

/// Applies a later response, whose `down` includes the targets that left for good. Throws Error EPROTO, with
/// nothing changed, if the update names unknown targets.
void apply_update(Picture& picture, const module::Delta& update) {
  const auto& known = picture.resources.ranks();
  check_known("up", update.up, known);
  check_known("down", update.down, known);
  check_known("shrink", update.shrink, known);
  for (const auto& [name, ranks] : update.property_add) check_known("property-add", ranks, known);
  for (const auto& [name, ranks] : update.property_remove) check_known("property-remove", ranks, known);
  for (const IdSet* ranks :
       {&update.cause.drained, &update.cause.offline, &update.cause.torpid, &update.cause.excluded})
    check_known("cause", *ranks, known);

  const bool new_inventory = !update.shrink.empty() || !update.property_add.empty() ||
                             !update.property_remove.empty() || update.expiration.has_value();
  if (new_inventory) {
    rset::ResourceSet resources = picture.resources;
    try {
      for (const auto& [name, ranks] : update.property_remove) resources.remove_property(name, ranks);
      for (const auto& [name, ranks] : update.property_add) resources.add_property(name, ranks);
      if (update.expiration) resources.set_expiration(*update.expiration);
      if (!update.shrink.empty()) resources.remove_ranks(update.shrink);
    } catch (const Error& error) {
      throw Error(EPROTO, fmt::format("resource.acquire: {}", error.what()));
    }
    picture.resources = std::move(resources);
  }
  picture.up |= update.up;
  picture.up -= update.down;
  picture.up -= update.shrink;
}

constexpr std::string_view topic = "resource.acquire";
constexpr BackoffLimits pauses{Milliseconds(20), Milliseconds(500)};

}  // namespace

// Shared with the handlers of its request and timer: a call of the observer may destroy the acquisition.
class Acquisition::Impl : public std::enable_shared_from_this<Acquisition::Impl> {
 public:
  Impl(Connection& connection, AcquisitionObserver& observer, AcquisitionOptions options)
      : connection_(connection),
        observer_(observer),
        options_(std::move(options)),
        ledger_(connection, options_.partition, options_.ledger) {}

  void start() { request(options_.wait_for_daemon); }

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const rset::ResourceSet& resources() const noexcept { return picture_.resources; }
  [[nodiscard]] const IdSet& up() const noexcept {
    // The handlers of a closed connection are not called.
    return connection_.connected() ? picture_.up : none_;
  }
  [[nodiscard]] const std::vector<ScheduledDrain>& scheduled() const noexcept { return scheduled_; }
  [[nodiscard]] Ledger& ledger() {
    if (!options_.ledger)
      throw Error(EINVAL, "the acquisition has no ledger: set AcquisitionOptions::ledger");
    return ledger_;
  }

  void close() {
    if (state_ == State::ended) return;
    leave(State::ended);
    ledger_.close();
    if (pause_timer_) connection_.cancel_timer(*pause_timer_);
    if (renewal_timer_) connection_.cancel_timer(*renewal_timer_);
    if (request_) {
      connection_.cancel(*request_);
      connection_.forget(*request_);
    }
  }

 private:
  void request(bool wait_for_daemon) {
    partial_.reset();
    SendOptions options;
    options.streaming = true;
    options.wait_for_daemon = wait_for_daemon;
    options.answer_timeout = options_.wait ? Milliseconds(0) : options_.answer_timeout;
    proto::topics::AcquireRequest wanted;
    if (!options_.partition.empty()) wanted.partition = options_.partition;
    // A daemon that keeps no ledger refuses a request for allocations, and would leave out the extension.
    wanted.allocations = options_.allocations || options_.ledger;
    if (options_.ledger || options_.scheduled || options_.cause)
      wanted.extensions = module::Extensions{options_.ledger, options_.scheduled, options_.cause};
    wanted.wait = options_.wait;
    wanted.holder = token_;
    wanted.lease = options_.lease;
    request_ = connection_.send(
        topic, proto::topics::encode_acquire(wanted),
        [self = shared_from_this()](const Response& response) { self->receive(response); }, options);
    renew_later();
  }

  void renew_later() {
    if (!options_.lease || renewal_timer_) return;
    constexpr int renewals = 3;
    renewal_timer_ = connection_.after(*options_.lease / renewals, [self = shared_from_this()] {
      self->renewal_timer_.reset();
      if (!self->request_) return;
      self->connection_.notify("resource.acquire-renew", nullptr);
      self->renew_later();
    });
  }

  void receive(const Response& response) {
    if (response.last()) request_.reset();
    if (!response.ok()) {
      fail(response);
      return;
    }
    if (held()) {
      update(response);
    } else {
      first(response);
    }
  }

  /// Takes a first response, or the next part of its allocations.
  void first(const Response& response) {
    try {
      if (partial_) {
        proto::topics::LedgerUpdate part = proto::topics::parse_ledger_update(response.payload());
        partial_->more = part.more;
        std::ranges::move(part.allocations, std::back_inserter(partial_->allocations));
      } else {
        partial_ = proto::topics::parse_acquired(response.payload());
      }
    } catch (const Error& error) {
      end(error);
      return;
    }
    if (const auto& leader = partial_->leader;
        leader && !connection_.follows(leader->epoch, leader->cluster)) {
      if (request_) connection_.forget(*std::exchange(request_, std::nullopt));
      request_after_pause();
      return;
    }
    std::vector<Allocation> allocations;
    if (!partial_->more) allocations = begin();
    observer_.on_response(response.text());
    if (held()) tell_first(allocations);
  }

  /// Returns the present allocations.
  std::vector<Allocation> begin() {
    const rset::ResourceSet former = std::move(picture_.resources);
    picture_ = *std::exchange(partial_, std::nullopt);
    scheduled_ = public_forms(picture_.scheduled.value_or(module::ScheduledDrains()));
    state_ = State::held;
    acquired_before_ = true;
    busy_until_.reset();
    pause_.reset();
    std::vector<Allocation> allocations = public_forms(std::exchange(picture_.allocations, {}));
    ledger_.begin(allocations, picture_.sequence, former, picture_.resources);
    return allocations;
  }

  /// Reports the whole first response.
  void tell_first(const std::vector<Allocation>& allocations) {
    // The observer may close the acquisition, which empties up().
    observer_.on_resources(picture_.resources, IdSet(picture_.up));
    if (held() && (options_.allocations || options_.ledger)) observer_.on_allocations(allocations);
    // A copy, as on_scheduled() may close the acquisition and destroy it.
    if (held() && picture_.scheduled) observer_.on_scheduled(std::vector(scheduled_));
    if (held()) observer_.on_change();
  }

  void update(const Response& response) {
    module::Delta change;
    Ledger::News news;
    try {
      change = proto::topics::parse_delta(response.payload());
      if (options_.ledger) news = news_of(proto::topics::parse_ledger_update(response.payload()));
      apply_update(picture_, change);
    } catch (const Error& error) {
      end(error);
      return;
    }
    ledger_.take(news);
    if (change.scheduled) scheduled_ = public_forms(*change.scheduled);
    observer_.on_response(response.text());
    if (held() && !news.freed.empty()) observer_.on_freed(news.freed);
    if (held() && !news.changed.empty()) observer_.on_changed(news.changed);
    for (const auto& [partition, id] : news.expired) {
      if (held()) observer_.on_expired(partition, id);
    }
    for (const auto& [name, ranks] : change.property_remove) {
      if (held()) observer_.on_property_remove(name, ranks);
    }
    for (const auto& [name, ranks] : change.property_add) {
      if (held()) observer_.on_property_add(name, ranks);
    }
    if (held() && change.expiration) observer_.on_expiration(*change.expiration);
    if (held() && has_cause(change)) observer_.on_cause(public_form(std::move(change.cause)));
    if (held() && !change.shrink.empty()) observer_.on_shrink(change.shrink);
    // on_shrink() implies that these targets are down.
    change.down -= change.shrink;
    if (held() && !change.down.empty()) observer_.on_down(change.down);
    if (held() && !change.up.empty()) observer_.on_up(change.up);
    if (held() && change.scheduled) observer_.on_scheduled(std::vector(scheduled_));
    if (held()) observer_.on_change();
  }

  static Ledger::News news_of(proto::topics::LedgerUpdate&& update) {
    Ledger::News news;
    for (proto::topics::LedgerUpdate::Freed& one : update.freed)
      news.freed.push_back({std::move(one.name.id), std::move(one.name.partition), std::move(one.ranks)});
    news.changed = public_forms(std::move(update.allocations));
    for (module::AllocationName& one : update.expired)
      news.expired.emplace_back(std::move(one.partition), std::move(one.id));
    news.sequence = update.sequence;
    return news;
  }

  void fail(const Response& response) {
    const Error& error = response.error();
    const bool shut_down = error.errnum() == ECANCELED && is_shut_down(error);
    if (response.local() ? error.errnum() == ECONNRESET : (shut_down && options_.follow_restart)) {
      const bool told = state_ == State::lost;
      leave(State::lost);
      busy_until_.reset();
      // Wait before the next attempt: a daemon that shuts down would refuse each new request at once.
      if (response.local()) {
        request(true);
      } else {
        request_after_pause();
      }
      if (!told) observer_.on_lost(error);
      return;
    }
    if (held()) return end(error);
    // The daemon is a standby, which may lead next.
    if (error.errnum() == EHOSTUNREACH && (acquired_before_ || options_.wait_for_daemon)) {
      request_after_pause();
      return;
    }
    if (error.errnum() == EBUSY && acquired_before_ && busy_may_pass()) {
      request_after_pause();
      return;
    }
    end(error);
  }

  /// Whether EBUSY may still pass: the daemon may need a moment to notice that the connection which held the
  /// resources is lost.
  bool busy_may_pass() {
    const auto now = std::chrono::steady_clock::now();
    if (!busy_until_) busy_until_ = now + bounded(options_.busy_retry);
    return now < *busy_until_;
  }

  void request_after_pause() {
    pause_timer_ = connection_.after(pause_.next(), [self = shared_from_this()] {
      self->pause_timer_.reset();
      self->request(true);
    });
  }

  /// Enters a state in which nothing is held.
  void leave(State state) {
    state_ = state;
    picture_.up = {};
    ledger_.leave();
  }

  void end(const Error& error) {
    close();
    observer_.on_error(error);
  }

  [[nodiscard]] bool held() const noexcept { return state_ == State::held; }

  Connection& connection_;
  AcquisitionObserver& observer_;
  AcquisitionOptions options_;
  Ledger ledger_;
  State state_ = State::waiting;
  Picture picture_;
  /// The drains of the last response that had them, in their public form.
  std::vector<ScheduledDrain> scheduled_;
  const IdSet none_;
  /// With this token the acquisition goes on after a loss of the connection, even if the daemon has not
  /// noticed it.
  const std::string token_ = random_token();
  /// A first response whose last part has not come yet.
  std::optional<Picture> partial_;
  bool acquired_before_ = false;
  std::optional<Connection::RequestId> request_;
  std::optional<Connection::TimerId> pause_timer_;
  std::optional<Connection::TimerId> renewal_timer_;
  Backoff pause_{pauses};
  std::optional<std::chrono::steady_clock::time_point> busy_until_;
};

Acquisition::Acquisition(Connection& connection, AcquisitionObserver& observer, AcquisitionOptions options)
    : impl_(std::make_shared<Impl>(connection, observer, std::move(options))) {
  impl_->start();
}
Acquisition::~Acquisition() { impl_->close(); }

Acquisition::State Acquisition::state() const noexcept { return impl_->state(); }
const rset::ResourceSet& Acquisition::resources() const noexcept { return impl_->resources(); }
const IdSet& Acquisition::up() const noexcept { return impl_->up(); }
const std::vector<ScheduledDrain>& Acquisition::scheduled() const noexcept { return impl_->scheduled(); }
Ledger& Acquisition::ledger() const { return impl_->ledger(); }
void Acquisition::close() { impl_->close(); }

}  // namespace resourced::client
