#include "daemon/log/etcd/etcd_client.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "daemon/log/etcd/aside.hpp"
#include "daemon/log/etcd/etcd_json.hpp"
#include "daemon/log/etcd/http_client.hpp"
#include "os/log.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
using namespace requests;

constexpr unsigned ok = 200;

}  // namespace

struct EtcdClient::State : std::enable_shared_from_this<State> {
  /// A request on its way through the endpoints.
  struct Call {
    Request request;
    EtcdRequest encoded;
    Handler handler;
    std::size_t attempts = 0;
    /// The token with which the request was sent last.
    std::string token;
    bool has_renewed = false;
    /// Whether the endpoint that has refused the request was found to be of the etcd that this client uses.
    bool is_checked = false;
    /// The number of a watch; 0 for other requests.
    std::uint64_t watch = 0;
  };
  using CallPtr = std::shared_ptr<Call>;

  State(asio::io_context& loop, const config::Cluster& settings, Credentials read)
      : prefix(settings.prefix),
        credentials(std::move(read)),
        // A quarter of the lease's time: after an endpoint that does not answer, there is time for another
        // one.
        timeout(std::chrono::duration_cast<std::chrono::milliseconds>(settings.lease_ttl / 4)),
        login_timeout(std::chrono::duration_cast<std::chrono::milliseconds>(settings.lease_ttl)),
        names(settings.etcd),
        aside(loop),
        http(loop, credentials) {
    for (const std::string& text : names) {
      const config::EtcdEndpoint endpoint = config::parse_etcd_endpoint(text);
      urls.push_back(fmt::format("{}://{}", endpoint.is_tls ? "https" : "http", endpoint.authority()));
    }
  }

  // Whether a later watch has ended this one.
  [[nodiscard]] bool is_superseded(const CallPtr& call) const {
    return call->watch != 0 && call->watch != watches;
  }

  void proceed(const CallPtr& call) {
    if (is_superseded(call)) return;
    if (urls.size() > 1 && !is_surveyed) return survey(call);
    if (!credentials.user.empty() && token.empty() && !is_auth_off) return log_in(call);
    call->token = token;
    if (std::holds_alternative<Watch>(call->request)) return watch(call);
    post(call->encoded, token, timeout, current,
         [this, call](std::size_t endpoint, HttpAnswer answer) { take(call, endpoint, std::move(answer)); });
  }

  // Asks all endpoints for the id of their etcd. The client uses the id of the majority. Without a majority
  // it keeps the former id if an endpoint has it; at first it takes the id that all answers have.
  void survey(const CallPtr& call) {
    await_survey.push_back(call);
    if (await_survey.size() > 1) return;
    ids.assign(urls.size(), "");
    asked = urls.size();
    const std::size_t round = ++rounds;
    for (std::size_t endpoint = 0; endpoint < urls.size(); ++endpoint) {
      post(encode_status(), {}, timeout, endpoint, [this, round](std::size_t from, const HttpAnswer& answer) {
        if (round != rounds) return;
        --asked;
        if (answer.status == ok)
          ids[from] = cluster_in(answer.body);
        else
          trouble = fmt::format("{}: {}", names[from], answer.why);
        if (!await_survey.empty()) return decide();
        name_foreign(from);
      });
    }
  }

  void decide() {
    std::string most;
    std::ptrdiff_t count = 0;
    bool agree = true;
    for (const std::string& id : ids) {
      if (id.empty()) continue;
      const std::ptrdiff_t with_it = std::ranges::count(ids, id);
      if (!most.empty() && id != most) agree = false;
      if (with_it > count) {
        most = id;
        count = with_it;
      }
    }
    const bool is_majority = 2 * static_cast<std::size_t>(count) > urls.size();
    if (!is_majority && asked > 0) return;
    const bool has_former = !cluster.empty() && std::ranges::count(ids, cluster) > 0;
    const std::vector<CallPtr> calls = std::exchange(await_survey, {});
    if (!is_majority && !has_former && (!agree || most.empty() || !cluster.empty())) {
      if (!most.empty()) trouble = "the endpoints are of different etcd clusters" + listed();
      for (const CallPtr& call : calls) call->handler(Unknown{trouble});
      return;
    }
    if (is_majority || !has_former) cluster = most;
    is_surveyed = true;
    for (std::size_t endpoint = 0; endpoint < ids.size(); ++endpoint) name_foreign(endpoint);
    if (ids[current] != cluster)
      current = static_cast<std::size_t>(std::ranges::find(ids, cluster) - ids.begin());
    for (const CallPtr& call : calls) proceed(call);
  }

  [[nodiscard]] std::string listed() const {
    std::string text;
    for (std::size_t endpoint = 0; endpoint < ids.size(); ++endpoint)
      text += fmt::format("{} {} {}", text.empty() ? ":" : ",", names[endpoint],
                          ids[endpoint].empty() ? "has not answered" : "is of " + ids[endpoint]);
    return text;
  }

  /// Whether the ids of answers are compared, also while the endpoints are asked anew.
  [[nodiscard]] bool knows_etcd() const { return urls.size() > 1 && !cluster.empty(); }

  [[nodiscard]] bool is_foreign(std::size_t endpoint) const {
    return knows_etcd() && !ids[endpoint].empty() && ids[endpoint] != cluster;
  }

  void name_foreign(std::size_t endpoint) {
    if (!is_foreign(endpoint) || !named.insert({endpoint, ids[endpoint]}).second) return;
    os::log_error("the endpoint {} is not used: it belongs to etcd cluster {}, and not to {}",
                  names[endpoint], ids[endpoint], cluster);
  }

  // Whether the answer, which has a header, is of another etcd than the one that is used.
  bool is_of_another(std::size_t endpoint, std::string_view answer) {
    const std::string_view id = cluster_in(answer);
    if (!knows_etcd() || id.empty()) return false;
    ids[endpoint] = id;
    name_foreign(endpoint);
    return is_foreign(endpoint);
  }

  // Sends a request to the next endpoint, since its answer is of another etcd and the request has not reached
  // this one.
  void pass_over(const CallPtr& call, std::size_t endpoint) {
    lose(call, endpoint, "is of another etcd cluster", false);
  }

  // Asks the endpoint for its id, as a refusal has no header with it.
  void check_refusal(const CallPtr& call, std::size_t endpoint, const HttpAnswer& refusal) {
    call->is_checked = true;
    post(encode_status(), {}, timeout, endpoint,
         [this, call, refusal](std::size_t from, const HttpAnswer& answer) {
           if (is_superseded(call)) return;
           const bool is_other = answer.status == ok && is_of_another(from, answer.body);
           is_other ? pass_over(call, from) : take(call, from, refusal);
         });
  }

  template <class Take>
  void post(const EtcdRequest& request, const std::string& with, std::chrono::milliseconds longest,
            std::size_t endpoint, Take take) {
    http.post({urls[endpoint] + request.target, request.body, with}, longest,
              [self = weak_from_this(), endpoint, take](HttpAnswer answer) {
                // The call of `take` may destroy the client.
                const auto alive = self.lock();
                take(endpoint, std::move(answer));
              });
  }

  void watch(const CallPtr& call) {
    const std::size_t endpoint = current;
    http.watch(
        {urls[endpoint] + call->encoded.target, call->encoded.body, token}, timeout,
        [this, call, endpoint](const std::string& lines) { take_lines(call, endpoint, lines); },
        [this, call, endpoint](HttpAnswer answer) { take(call, endpoint, std::move(answer)); });
  }

  // Reports several changes that have come together as one.
  void take_lines(const CallPtr& call, std::size_t endpoint, std::string_view lines) {
    if (is_of_another(endpoint, lines)) {
      http.end_watch();
      return pass_over(call, endpoint);
    }
    const Watch& watched = std::get<Watch>(call->request);
    std::optional<Outcome> outcome;
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(line.size() + 1);
      try {
        if (auto next = decode_watched(watched, line)) outcome = std::move(next);
      } catch (const Error& error) {
        outcome = Unknown{error.what()};
      }
      if (outcome && !std::holds_alternative<Changed>(*outcome)) break;
    }
    if (!outcome) return;
    if (!std::holds_alternative<Changed>(*outcome)) http.end_watch();
    if (const auto* lost = std::get_if<Unknown>(&*outcome)) return lose(call, endpoint, lost->why, true);
    const auto* refused = std::get_if<Refused>(&*outcome);
    const bool is_of_token =
        refused != nullptr && (refused->why.find("auth token") != std::string::npos ||
                               refused->why.find("user name is empty") != std::string::npos);
    if (is_of_token && may_renew(call)) return renew(call);
    call->handler(*outcome);
  }

  void take(const CallPtr& call, std::size_t endpoint, HttpAnswer answer) {
    if (answer.status == 0) {
      doubt_token(call, answer.was_sent);
      return lose(call, endpoint, answer.why, answer.was_sent);
    }
    unanswered = 0;
    if (answer.status == ok && is_of_another(endpoint, answer.body)) return pass_over(call, endpoint);
    // Bodies of this size are decoded in far less than a millisecond.
    constexpr std::size_t most_direct_bytes = std::size_t{32} << 10;
    if (answer.status == ok && answer.body.size() <= most_direct_bytes)
      return take_decoded(call, endpoint, decode(call->request, prefix, answer.body));
    if (answer.status == ok) {
      return aside.run(
          [this, call, endpoint, prefix = prefix, body = std::move(answer.body)]() -> std::function<void()> {
            auto decoded = std::make_shared<Decoded>(decode(call->request, prefix, body));
            return [this, call, endpoint, decoded] { take_decoded(call, endpoint, *decoded); };
          });
    }
    const EtcdFailure failure = decode_failure(answer.status, answer.body);
    using Kind = EtcdFailure::Kind;
    if (failure.kind == Kind::unknown) return lose(call, endpoint, failure.why, true);
    if (knows_etcd() && !call->is_checked) return check_refusal(call, endpoint, answer);
    if (failure.kind == Kind::token && may_renew(call)) return renew(call);
    trouble = fmt::format("{}: {}", names[endpoint], failure.why);
    if (failure.kind == Kind::token && credentials.user.empty())
      trouble += ": etcd has users now; set user and password-file in [cluster], and reload";
    call->handler(Refused{trouble, failure.kind == Kind::lease_has_ended});
  }

  bool may_renew(const CallPtr& call) const { return !credentials.user.empty() && !call->has_renewed; }

  // Sends a request that was refused for its token, or for lack of one, with a new token.
  void renew(const CallPtr& call) {
    call->has_renewed = true;
    is_auth_off = false;
    // Another request may have set a new token already.
    if (token == call->token) token.clear();
    proceed(call);
  }

  // Logs in again after repeated silence: an etcd that was restored from a backup does not answer a token of
  // a later revision than its own.
  void doubt_token(const CallPtr& call, bool was_sent) {
    constexpr std::size_t most_unanswered = 2;
    if (!was_sent || call->token.empty() || call->token != token || ++unanswered < most_unanswered) return;
    unanswered = 0;
    token.clear();
  }

  void set_credentials(Credentials next) {
    credentials = std::move(next);
    ++credential_changes;
    is_auth_off = false;
    token.clear();
    http.set_credentials(credentials);
  }

  using Decoded = std::variant<Outcome, Error>;
  static Decoded decode(const Request& request, const std::string& prefix, const std::string& body) {
    try {
      return decode_answer(request, prefix, body);
    } catch (const Error& error) {
      return error;
    }
  }

  void take_decoded(const CallPtr& call, std::size_t endpoint, const Decoded& decoded) {
    if (const auto* error = std::get_if<Error>(&decoded)) return lose(call, endpoint, error->what(), true);
    trouble.clear();
    call->handler(std::get<Outcome>(decoded));
  }

  // Ends an attempt that got no answer. A request that was not sent goes to the next endpoint.
  void lose(const CallPtr& call, std::size_t endpoint, const std::string& why, bool was_sent) {
    if (is_superseded(call)) return;
    trouble = fmt::format("{}: {}", names[endpoint], why);
    if (current == endpoint) {
      do current = (current + 1) % urls.size();
      while (current != endpoint && is_foreign(current));
    }
    call->is_checked = false;
    if (!was_sent && ++call->attempts < urls.size()) return proceed(call);
    if (!was_sent) is_surveyed = false;
    call->handler(Unknown{trouble});
  }

  // Logs in once for all requests that wait for a token. Etcd hashes a password slowly on purpose, and goes
  // on with it after the client has given up: several at once, or given up early, could keep it from ever
  // answering.
  void log_in(const CallPtr& call) {
    await_token.push_back(call);
    if (await_token.size() > 1) return;
    post(encode_login(credentials.user, credentials.password), {}, login_timeout, current,
         [this, changes = credential_changes](std::size_t endpoint, const HttpAnswer& answer) {
           take_login(endpoint, answer, changes == credential_changes);
         });
  }

  void take_login(std::size_t endpoint, const HttpAnswer& answer, bool is_of_present) {
    const std::vector<CallPtr> calls = std::exchange(await_token, {});
    if (!is_of_present) {
      for (const CallPtr& call : calls) proceed(call);
      return;
    }
    const auto lose_all = [&](const std::string& why) {
      for (const CallPtr& call : calls) lose(call, endpoint, why, false);
    };
    if (answer.status == 0) return lose_all(answer.why);
    std::string why;
    try {
      if (answer.status == ok) {
        token = decode_login(answer.body);
      } else {
        const EtcdFailure failure = decode_failure(answer.status, answer.body);
        if (failure.kind == EtcdFailure::Kind::unknown) return lose_all(failure.why);
        is_auth_off = failure.kind == EtcdFailure::Kind::auth_is_off;
        if (!is_auth_off) why = failure.why;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    if (why.empty()) {
      for (const CallPtr& call : calls) proceed(call);
      return;
    }
    trouble = fmt::format("{}: user {}: {}", names[endpoint], credentials.user, why);
    for (const CallPtr& call : calls) call->handler(Refused{trouble, false});
  }

  std::string prefix;
  Credentials credentials;
  /// Number of calls of set_credentials().
  std::size_t credential_changes = 0;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds login_timeout;
  /// The endpoints as configured, and as URLs.
  std::vector<std::string> names;
  std::vector<std::string> urls;
  std::size_t current = 0;
  /// The id of the etcd that is used, and the ids of the endpoints, empty as long as they are unknown.
  /// Members that were removed may come back as an etcd of their own.
  std::string cluster;
  std::vector<std::string> ids;
  bool is_surveyed = false;
  /// Endpoints that have not answered the survey yet, and the calls that wait for it.
  std::size_t asked = 0;
  std::size_t rounds = 0;
  std::vector<CallPtr> await_survey;
  std::set<std::pair<std::size_t, std::string>> named;
  std::string token;
  /// Whether etcd has answered a login that its authentication is not enabled.
  bool is_auth_off = false;
  /// Number of requests with this token in a row that got no answer.
  std::size_t unanswered = 0;
  /// Requests that wait for the token of the login under way.
  std::vector<CallPtr> await_token;
  /// Number of watches so far.
  std::uint64_t watches = 0;
  std::string trouble;
  Aside aside;
  HttpClient http;
};

EtcdClient::EtcdClient(asio::io_context& loop, const config::Cluster& settings)
    : state_(std::make_shared<State>(loop, settings, read_credentials(settings))) {}

EtcdClient::~EtcdClient() = default;

void EtcdClient::send(Request request, Handler handler) {
  auto call = std::make_shared<State::Call>();
  call->encoded = encode_request(request, state_->prefix);
  call->request = std::move(request);
  call->handler = std::move(handler);
  if (std::holds_alternative<Watch>(call->request)) call->watch = ++state_->watches;
  state_->proceed(call);
}

void EtcdClient::set_credentials(Credentials credentials) { state_->set_credentials(std::move(credentials)); }

const std::string& EtcdClient::trouble() const noexcept { return state_->trouble; }

}  // namespace resourced::daemon::log::etcd
