#include "daemon/log/etcd/record_json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/module/state.hpp"
#include "core/text/hostlist.hpp"
#include "daemon/log/etcd/packed_text.hpp"
#include "os/sha256.hpp"
#include "proto/actor_json.hpp"
#include "proto/json_text.hpp"
#include "proto/state_json.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using log::Record;
using nlohmann::json;

// The functions below read a value. The library throws for a value of another type.

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

void take(const json& object, const char* key, text::Hostlist& hosts) {
  if (const json* value = find(object, key)) hosts = text::Hostlist::parse(value->get<std::string>());
}

void take(const json& object, const char* key, std::optional<module::Actor>& actor) {
  if (const json* value = find(object, key)) actor = proto::read_actor(*value);
}

Record decode_record(const json& object) {
  Record record;
  record.sequence = object.at("sequence").get<log::Sequence>();
  record.timestamp = wall_time(object.at("timestamp").get<double>());
  record.name = object.at("name").get<std::string>();
  record.text = object.at("text").get<std::string>();
  take(object, "hosts", record.hosts);
  record.audience =
      find(object, "hidden") == nullptr ? proto::audience_of(record.name) : log::Audience::nobody;
  take(object, "by", record.by);
  if (const json* rest = find(object, "rest")) record.rest = rest->get<std::string>();
  if (const json* documents = find(object, "documents")) {
    for (const json& text : *documents) {
      auto document = std::make_shared<const std::string>(text.get<std::string>());
      std::string name = os::sha256(*document);
      record.documents.emplace(std::move(name), std::move(document));
    }
  }
  const proto::FindDocument find_document = [&](const std::string& name) {
    const auto found = record.documents.find(name);
    if (found == record.documents.end()) throw Error(EINVAL, fmt::format("document {} is missing", name));
    return found->second;
  };
  if (const json* resources = find(object, "R"))
    record.resources = find_document(resources->get<std::string>());
  if (const json* state = find(object, "snapshot"))
    record.snapshot =
        std::make_shared<const module::State>(proto::parse_state(state->get<std::string>(), find_document));
  return record;
}

}  // namespace

// Writes the text piece by piece to save time, as a leader writes each event. Bytes that are not UTF-8, as
// texts of requests may have them, are replaced.
std::string encode_record(const Record& record) {
  constexpr auto replace = json::error_handler_t::replace;
  std::string line = "{";
  const auto put_text = [&line](const char* key, std::string_view text) {
    proto::append_member(line, key, text);
  };
  const auto put_json = [&line](const char* key, const json& value) {
    proto::append_key(line, key);
    line += value.dump(-1, ' ', false, replace);
  };
  proto::append_key(line, "sequence");
  line += fmt::format_int(record.sequence).c_str();
  proto::append_member(line, "timestamp", record.timestamp);
  put_text("name", record.name);
  put_text("text", record.text);
  if (!record.hosts.empty()) put_text("hosts", record.hosts.encode());
  if (record.audience == log::Audience::nobody) put_json("hidden", true);
  if (record.by) put_json("by", proto::actor_to_json(*record.by));
  if (record.rest) put_text("rest", *record.rest);
  proto::Documents documents(os::sha256);
  for (const auto& [name, text] : record.documents) (void)documents.add(text);
  if (record.resources) put_text("R", documents.add(record.resources));
  if (record.snapshot) put_text("snapshot", proto::encode_state(*record.snapshot, documents));
  if (!documents.texts().empty()) {
    proto::append_key(line, "documents");
    line += '[';
    for (const auto& [name, text] : documents.texts()) {
      if (line.back() != '[') line += ',';
      proto::append_string(line, *text);
    }
    line += ']';
  }
  line += "}\n";
  return line;
}

std::vector<Record> decode_records(std::string_view text, log::Sequence first, log::Sequence last) {
  constexpr std::size_t depth = 8;
  std::vector<Record> records;
  const auto refuse = [&](std::string_view why) {
    return Error(EBADMSG, fmt::format("event {} in etcd is not readable: {}", first + records.size(), why));
  };
  const auto unpacked = unpack(text);
  if (!unpacked) throw refuse("it cannot be unpacked");
  std::string_view lines = *unpacked;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const auto value = json_text::read_json(line, depth, json_text::JsonManners::strict);
    if (!std::holds_alternative<json>(value)) throw refuse("it is not JSON");
    try {
      Record record = decode_record(std::get<json>(value));
      if (record.sequence != first + records.size()) throw refuse("it has another number");
      records.push_back(std::move(record));
    } catch (const json::exception& error) {
      throw refuse(error.what());
    } catch (const Error& error) {
      if (error.errnum() == EBADMSG) throw;
      throw refuse(error.what());
    }
  }
  if (records.size() != last - first + 1) throw refuse("it is missing");
  return records;
}

}  // namespace resourced::daemon::log::etcd
