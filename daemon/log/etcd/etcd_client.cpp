#include "daemon/log/etcd/etcd_client.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "daemon/log/etcd/aside.hpp"
#include "daemon/log/etcd/etcd_json.hpp"
#include "os/file.hpp"

namespace resourced::daemon::log::etcd {
namespace {

namespace asio = boost::asio;
using namespace requests;

[[noreturn]] void refuse_file(const std::string& path, const boost::system::error_code& error) {
  throw Error(EINVAL, fmt::format("{}: cannot be used for TLS: {}", path, error.message()));
}

void check_private(const std::string& path) {
  const os::InputFile file(path);
  if ((file.status().st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(EACCES, path + ": other users can read or change it; chmod 600 it");
}

std::string read_password(const std::string& path) {
  if (path.empty()) return {};
  check_private(path);
  constexpr std::size_t most = 4096;
  std::string password = os::read_file(path, most);
  if (password.ends_with('\n')) password.pop_back();
  return password;
}

}  // namespace

std::shared_ptr<asio::ssl::context> load_client_tls(const config::Cluster& settings) {
  using asio::ssl::context;
  auto tls = std::make_shared<context>(context::tls_client);
  boost::system::error_code error;
  tls->set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                       context::no_tlsv1_1 | context::no_compression,
                   error);
  if (settings.ca_file.empty()) {
    tls->set_default_verify_paths(error);
  } else {
    (void)os::InputFile(settings.ca_file);
    tls->load_verify_file(settings.ca_file, error);
    if (error) refuse_file(settings.ca_file, error);
  }
  if (!settings.certificate.empty()) {
    (void)os::InputFile(settings.certificate);
    check_private(settings.key);
    tls->use_certificate_chain_file(settings.certificate, error);
    if (error) refuse_file(settings.certificate, error);
    // Without this the library would ask for a pass phrase on the terminal.
    tls->set_password_callback(
        [](std::size_t /*most*/, context::password_purpose /*purpose*/) { return std::string(); }, error);
    tls->use_private_key_file(settings.key, context::pem, error);
    if (error) refuse_file(settings.key, error);
    if (SSL_CTX_check_private_key(tls->native_handle()) != 1) {
      throw Error(EINVAL, fmt::format("{}: is not the key of the certificate in {}", settings.key,
                                      settings.certificate));
    }
  }
  ERR_clear_error();
  return tls;
}

struct EtcdClient::State : std::enable_shared_from_this<State> {
  /// A request with its way through the endpoints.
  struct Call {
    Request request;
    EtcdRequest encoded;
    Handler handler;
    std::size_t attempts = 0;
    /// With which it was sent last.
    std::string token;
    bool has_renewed = false;
  };
  using CallPtr = std::shared_ptr<Call>;

  State(asio::io_context& loop, const config::Cluster& settings)
      : prefix(settings.prefix),
        user(settings.user),
        password(read_password(settings.password_file)),
        // An endpoint that does not answer leaves time for another one before the lease ends.
        timeout(std::chrono::duration_cast<std::chrono::milliseconds>(settings.lease_ttl / 4)),
        login_timeout(std::chrono::duration_cast<std::chrono::milliseconds>(settings.lease_ttl)),
        aside(loop) {
    std::shared_ptr<asio::ssl::context> tls;
    for (const std::string& text : settings.etcd) {
      const config::EtcdEndpoint endpoint = config::parse_etcd_endpoint(text);
      if (endpoint.is_tls && !tls) tls = load_client_tls(settings);
      channels.push_back(std::make_unique<Channel>(loop, endpoint, endpoint.is_tls ? tls : nullptr));
      names.push_back(text);
    }
  }

  void proceed(const CallPtr& call) {
    if (!user.empty() && token.empty()) return log_in(call);
    call->token = token;
    if (std::holds_alternative<Watch>(call->request)) return watch(call);
    post(call->encoded, token, timeout,
         [this, call](std::size_t endpoint, HttpAnswer answer) { take(call, endpoint, std::move(answer)); });
  }

  // The channels call no handler once they are destroyed with this object.
  template <class Take>
  void post(const EtcdRequest& request, const std::string& with, std::chrono::milliseconds longest,
            Take take) {
    const std::size_t endpoint = current;
    channels[endpoint]->post({request.target, request.body, with}, longest,
                             [weak = weak_from_this(), endpoint, take](HttpAnswer answer) {
                               if (const auto self = weak.lock()) take(endpoint, std::move(answer));
                             });
  }

  // The stream calls nothing once it is destroyed with this object, or with the next watch.
  void watch(const CallPtr& call) {
    const std::size_t endpoint = current;
    stream = channels[endpoint]->open_stream(
        {call->encoded.target, call->encoded.body, token}, timeout,
        {[this, call, endpoint](const std::string& lines) { take_lines(call, endpoint, lines); },
         [this, call, endpoint](const HttpAnswer& answer) { take(call, endpoint, answer); }});
  }

  // Changes that have come together are told once.
  void take_lines(const CallPtr& call, std::size_t endpoint, std::string_view lines) {
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
    if (!std::holds_alternative<Changed>(*outcome)) stream.reset();
    if (const auto* lost = std::get_if<Unknown>(&*outcome)) return lose(call, endpoint, lost->why, true);
    const auto* refused = std::get_if<Refused>(&*outcome);
    const bool is_of_token = refused != nullptr && refused->why.find("auth token") != std::string::npos;
    if (is_of_token && !user.empty() && !std::exchange(call->has_renewed, true)) {
      if (token == call->token) token.clear();
      return proceed(call);
    }
    call->handler(*outcome);
  }

  void take(const CallPtr& call, std::size_t endpoint, HttpAnswer answer) {
    if (answer.status == 0) return lose(call, endpoint, answer.why, answer.was_sent);
    constexpr unsigned ok = 200;
    // Decoded in far less than a millisecond.
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
    if (failure.kind == Kind::token && !user.empty() && !std::exchange(call->has_renewed, true)) {
      // Another request may have a new one already.
      if (token == call->token) token.clear();
      return proceed(call);
    }
    trouble = fmt::format("{}: {}", names[endpoint], failure.why);
    call->handler(Refused{trouble, failure.kind == Kind::lease_has_ended});
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

  // Without an answer. What was not sent is sent to the next endpoint.
  void lose(const CallPtr& call, std::size_t endpoint, const std::string& why, bool was_sent) {
    trouble = fmt::format("{}: {}", names[endpoint], why);
    if (current == endpoint) current = (endpoint + 1) % channels.size();
    if (!was_sent && ++call->attempts < channels.size()) return proceed(call);
    call->handler(Unknown{trouble});
  }

  // One for all requests that wait for a token. Etcd hashes a password slowly on purpose, and goes on with it
  // after the client has given up: several at once, or given up early, could keep it from ever answering.
  void log_in(const CallPtr& call) {
    await_token.push_back(call);
    if (await_token.size() > 1) return;
    post(encode_login(user, password), {}, login_timeout,
         [this](std::size_t endpoint, const HttpAnswer& answer) { take_login(endpoint, answer); });
  }

  void take_login(std::size_t endpoint, const HttpAnswer& answer) {
    const std::vector<CallPtr> calls = std::exchange(await_token, {});
    const auto lose_all = [&](const std::string& why) {
      for (const CallPtr& call : calls) lose(call, endpoint, why, false);
    };
    if (answer.status == 0) return lose_all(answer.why);
    constexpr unsigned ok = 200;
    std::string why;
    try {
      if (answer.status == ok) {
        token = decode_login(answer.body);
      } else {
        const EtcdFailure failure = decode_failure(answer.status, answer.body);
        if (failure.kind == EtcdFailure::Kind::unknown) return lose_all(failure.why);
        why = failure.why;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    if (why.empty()) {
      for (const CallPtr& call : calls) proceed(call);
      return;
    }
    trouble = fmt::format("{}: user {}: {}", names[endpoint], user, why);
    for (const CallPtr& call : calls) call->handler(Refused{trouble, false});
  }

  std::string prefix;
  std::string user;
  std::string password;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds login_timeout;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::string> names;
  std::size_t current = 0;
  std::string token;
  /// They go on with the answer of the login that is under way.
  std::vector<CallPtr> await_token;
  std::string trouble;
  /// Of the last watch.
  std::unique_ptr<LineStream> stream;
  Aside aside;
};

EtcdClient::EtcdClient(asio::io_context& loop, const config::Cluster& settings)
    : state_(std::make_shared<State>(loop, settings)) {}

EtcdClient::~EtcdClient() = default;

void EtcdClient::send(Request request, Handler handler) {
  auto call = std::make_shared<State::Call>();
  call->encoded = encode_request(request, state_->prefix);
  call->request = std::move(request);
  call->handler = std::move(handler);
  state_->proceed(call);
}

const std::string& EtcdClient::trouble() const noexcept { return state_->trouble; }

}  // namespace resourced::daemon::log::etcd
