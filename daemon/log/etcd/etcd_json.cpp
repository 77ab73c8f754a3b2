#include "daemon/log/etcd/etcd_json.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/json/utf8.hpp"
#include "core/text/base64.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using namespace requests;
using nlohmann::json;
using text::encode_base64;

[[noreturn]] void garbled(std::string_view what) {
  throw Error(EPROTO, fmt::format("etcd: {} is missing or not valid in an answer", what));
}

std::string decoded(std::string_view text, std::string_view what) {
  auto bytes = text::decode_base64(text);
  if (!bytes) garbled(what);
  return *std::move(bytes);
}

std::string number(std::int64_t value) { return fmt::format("{}", value); }

json compare(const Guard& guard, std::string_view prefix) {
  const bool is_created = guard.field == Guard::Field::created;
  return {{"key", encode_base64(std::string(prefix) + guard.key)},
          {"target", is_created ? "CREATE" : "MOD"},
          {"result", "EQUAL"},
          {is_created ? "create_revision" : "mod_revision", number(guard.revision)}};
}

struct OperationEncoder {
  std::string_view prefix;

  [[nodiscard]] std::string key(const std::string& name) const {
    return encode_base64(std::string(prefix) + name);
  }
  json operator()(const Put& put) const {
    json body{{"key", key(put.key)}, {"value", encode_base64(put.value)}};
    if (put.lease != 0) body["lease"] = number(put.lease);
    return {{"request_put", std::move(body)}};
  }
  json operator()(const Delete& gone) const {
    return {{"request_delete_range", {{"key", key(gone.key)}, {"range_end", key(gone.end)}}}};
  }
  json operator()(const Read& read) const {
    json body{{"key", key(read.key)}};
    if (!read.end.empty()) {
      body["range_end"] = key(read.end);
      body["limit"] = number(static_cast<std::int64_t>(read.limit));
    }
    return {{"request_range", std::move(body)}};
  }
};

struct RequestEncoder {
  std::string_view prefix;

  EtcdRequest operator()(const Transaction& transaction) const {
    json body = json::object();
    for (const Guard& guard : transaction.guards) body["compare"].push_back(compare(guard, prefix));
    for (const Operation& operation : transaction.then)
      body["success"].push_back(std::visit(OperationEncoder{prefix}, operation));
    for (const Operation& operation : transaction.otherwise)
      body["failure"].push_back(std::visit(OperationEncoder{prefix}, operation));
    return {"/v3/kv/txn", body.dump()};
  }
  EtcdRequest operator()(const Grant& grant) const {
    return {"/v3/lease/grant", json{{"TTL", number(std::llround(std::ceil(grant.ttl.count())))}}.dump()};
  }
  EtcdRequest operator()(const KeepAlive& alive) const {
    return {"/v3/lease/keepalive", json{{"ID", number(alive.lease)}}.dump()};
  }
  EtcdRequest operator()(const FindLease& find) const {
    return {"/v3/lease/timetolive", json{{"ID", number(find.lease)}}.dump()};
  }
  EtcdRequest operator()(const Revoke& revoke) const {
    return {"/v3/lease/revoke", json{{"ID", number(revoke.lease)}}.dump()};
  }
  EtcdRequest operator()(const Compact& compact) const {
    return {"/v3/kv/compaction", json{{"revision", number(compact.revision)}}.dump()};
  }
  EtcdRequest operator()(const Watch& watch) const {
    const json create{{"key", encode_base64(std::string(prefix) + watch.key)},
                      {"range_end", encode_base64(std::string(prefix) + watch.end)},
                      {"start_revision", number(watch.from)}};
    return {"/v3/watch", json{{"create_request", create}}.dump()};
  }
};

json parse(std::string_view text, std::size_t most_values = std::numeric_limits<std::size_t>::max()) {
  constexpr std::size_t depth = 16;
  auto value = json_text::read_json(text, depth, json_text::JsonManners::strict, most_values);
  auto* object = std::get_if<json>(&value);
  if (object == nullptr || !object->is_object()) throw Error(EPROTO, "etcd: an answer is not a JSON object");
  return std::move(*object);
}

const json& member(const json& object, const char* key) {
  if (!object.is_object()) garbled(key);
  const auto found = object.find(key);
  if (found == object.end()) garbled(key);
  return *found;
}

// Reads a number. Etcd leaves out a number of 0.
std::int64_t integer(const json& object, const char* key) {
  if (!object.is_object()) garbled(key);
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  if (!found->is_string()) garbled(key);
  const auto value = text::whole_number<std::int64_t>(found->get_ref<const std::string&>());
  if (!value) garbled(key);
  return *value;
}

const std::string& text_in(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) garbled(key);
  return value.get_ref<const std::string&>();
}

// Reads a flag. Etcd leaves out a flag that is not set.
bool flag(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  if (!found->is_boolean()) garbled(key);
  return found->get<bool>();
}

KeyValue key_value(const json& entry, std::string_view prefix) {
  KeyValue read;
  read.key = decoded(text_in(entry, "key"), "key");
  if (!read.key.starts_with(prefix)) garbled("key");
  read.key.erase(0, prefix.size());
  // Etcd leaves out an empty value.
  if (entry.contains("value")) read.value = decoded(text_in(entry, "value"), "value");
  read.created = integer(entry, "create_revision");
  read.modified = integer(entry, "mod_revision");
  read.lease = integer(entry, "lease");
  if (read.created <= 0 || read.modified < read.created) garbled("create_revision");
  return read;
}

std::vector<KeyValue> found_by(const Read& read, const json& response, std::string_view prefix) {
  std::vector<KeyValue> found;
  const json& range = member(response, "response_range");
  if (!range.is_object()) garbled("response_range");
  const auto entries = range.find("kvs");
  if (entries == range.end()) return found;
  if (!entries->is_array()) garbled("kvs");
  for (const json& entry : *entries) {
    KeyValue& next = found.emplace_back(key_value(entry, prefix));
    const bool is_asked =
        read.end.empty() ? next.key == read.key : next.key >= read.key && next.key < read.end;
    if (!is_asked) garbled("key");
  }
  if (found.size() > (read.end.empty() ? 1 : read.limit)) garbled("kvs");
  return found;
}

std::int64_t revision_of(const json& answer) {
  const std::int64_t revision = integer(member(answer, "header"), "revision");
  if (revision <= 0) garbled("revision");
  return revision;
}

struct AnswerDecoder {
  std::string_view prefix;
  const json& answer;

  Outcome operator()(const Transaction& transaction) const {
    TransactionDone done;
    done.revision = revision_of(answer);
    done.held = flag(answer, "succeeded");
    const std::vector<Operation>& operations = done.held ? transaction.then : transaction.otherwise;
    if (operations.empty()) return done;
    const json& responses = member(answer, "responses");
    if (!responses.is_array() || responses.size() != operations.size()) garbled("responses");
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (const auto* read = std::get_if<Read>(&operations[i]))
        done.found.push_back(found_by(*read, responses[i], prefix));
    }
    return done;
  }
  Outcome operator()(const Grant& /*grant*/) const { return lease(answer); }
  Outcome operator()(const KeepAlive& alive) const {
    const LeaseDone done = lease(member(answer, "result"));
    if (done.lease != alive.lease) garbled("ID");
    return done;
  }
  // Etcd answers -1 for a lease that is not there, and 0 in the last second of one.
  Outcome operator()(const FindLease& find) const {
    const std::int64_t ttl = integer(answer, "TTL");
    if (integer(answer, "ID") != find.lease || ttl < -1) garbled("TTL");
    return LeaseDone{find.lease,
                     ttl < 0 ? Seconds(0) : Seconds(static_cast<double>(std::max<std::int64_t>(ttl, 1)))};
  }
  Outcome operator()(const Revoke& /*revoke*/) const { return Done{}; }
  Outcome operator()(const Compact& /*compact*/) const { return Done{}; }
  // The answer to a watch has no end, and is read line by line (decode_watched).
  Outcome operator()(const Watch& /*watch*/) const { garbled("watch"); }

  static LeaseDone lease(const json& body) {
    const LeaseDone done{integer(body, "ID"), Seconds(static_cast<double>(integer(body, "TTL")))};
    constexpr double most_ttl = 9e9;
    if (done.lease == 0 || done.ttl < Seconds(0) || done.ttl > Seconds(most_ttl)) garbled("ID");
    return done;
  }
};

}  // namespace

EtcdRequest encode_request(const Request& request, std::string_view prefix) {
  return std::visit(RequestEncoder{prefix}, request);
}

Outcome decode_answer(const Request& request, std::string_view prefix, std::string_view body) {
  const json answer = parse(body);
  return std::visit(AnswerDecoder{prefix, answer}, request);
}

std::optional<Outcome> decode_watched(const Watch& watch, std::string_view line) {
  // More values than a line that HttpClient accepts has, if it is one of etcd.
  constexpr std::size_t most_values = 4096;
  const json message = parse(line, most_values);
  if (const auto error = message.find("error"); error != message.end())
    return Unknown{json_text::printable_line(text_in(*error, "message"))};
  const json& result = member(message, "result");
  if (!result.is_object()) garbled("result");
  if (flag(result, "canceled")) {
    if (const std::int64_t compacted = integer(result, "compact_revision"); compacted > 0)
      return Refused{fmt::format("changes up to revision {} are compacted", compacted)};
    return Refused{result.contains("cancel_reason")
                       ? json_text::printable_line(text_in(result, "cancel_reason"))
                       : "the watch is canceled"};
  }
  if (flag(result, "created")) return Changed{watch.from - 1};
  const auto events = result.find("events");
  if (events == result.end()) return std::nullopt;
  if (!events->is_array()) garbled("events");
  Changed changed;
  for (const json& event : *events)
    changed.revision = std::max(changed.revision, integer(member(event, "kv"), "mod_revision"));
  if (changed.revision < watch.from) garbled("mod_revision");
  return changed;
}

EtcdFailure decode_failure(unsigned status, std::string_view body) {
  using Kind = EtcdFailure::Kind;
  // Status codes of gRPC.
  constexpr int invalid_argument = 3;
  constexpr int not_found = 5;
  constexpr int failed_precondition = 9;
  constexpr int unauthenticated = 16;
  // The HTTP status of a proxy that has waited for too long: the outcome of the request is unknown.
  constexpr unsigned request_timeout = 408;
  EtcdFailure failure{Kind::unknown, fmt::format("HTTP status {}", status)};
  int code = 0;
  std::string message;
  try {
    const json answer = parse(body);
    if (const auto found = answer.find("code"); found != answer.end() && found->is_number_integer())
      code = found->get<int>();
    if (answer.contains("error")) message = text_in(answer, "error");
  } catch (const Error&) {
    return failure;
  }
  if (!message.empty()) failure.why = json_text::printable_line(message);
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (has("database space exceeded")) {
    failure.why =
        "its database is full (NOSPACE alarm): compact and defragment it, or raise its quota, then run "
        "etcdctl alarm disarm";
  }
  const bool is_of_client = status >= 400 && status < 500;
  if (code == not_found && has("lease not found")) {
    failure.kind = Kind::lease_has_ended;
  } else if (code == unauthenticated ||
             (code == invalid_argument && (has("user name is empty") || has("revision of auth store")))) {
    failure.kind = Kind::token;
  } else if (code == failed_precondition && has("authentication is not enabled")) {
    failure.kind = Kind::auth_is_off;
  } else if (is_of_client && status != request_timeout && !has("too many requests")) {
    failure.kind = Kind::refused;
  }
  return failure;
}

EtcdRequest encode_status() { return {"/v3/maintenance/status", "{}"}; }

// Searches the text for the id: the header comes first, and no text has quotes that are not escaped.
std::string_view cluster_in(std::string_view answer) {
  constexpr std::string_view name = R"("cluster_id":")";
  constexpr std::size_t most_before = 64;
  const std::size_t at = answer.substr(0, most_before).find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = answer.substr(at + name.size());
  return rest.substr(0, std::min(rest.find('"'), std::size_t{20}));
}

EtcdRequest encode_login(std::string_view user, std::string_view password) {
  return {"/v3/auth/authenticate", json{{"name", user}, {"password", password}}.dump()};
}

std::string decode_login(std::string_view body) {
  std::string token = text_in(parse(body), "token");
  constexpr std::size_t most = 8192;
  for (const char letter : token) {
    if (letter <= ' ' || letter > '~') garbled("token");
  }
  if (token.empty() || token.size() > most) garbled("token");
  return token;
}

}  // namespace resourced::daemon::log::etcd
