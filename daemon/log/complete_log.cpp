#include "daemon/log/complete_log.hpp"

#include <cerrno>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/engine/record.hpp"
#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "daemon/log/past_reader.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_reader.hpp"
#include "daemon/log/store_writer.hpp"
#include "os/sha256.hpp"
#include "proto/allocation_json.hpp"
#include "proto/event_json.hpp"
#include "proto/json_text.hpp"
#include "proto/message.hpp"
#include "proto/state_json.hpp"

namespace resourced::daemon::log {
namespace {

using nlohmann::json;

constexpr std::string_view own_key = R"("resourced":)";
constexpr std::string_view own_line = R"({"resourced":{)";
constexpr int format = 1;

// A snapshot may nest as deep as parse_state() lets it.
constexpr std::size_t own_depth = 2 * proto::max_json_depth + 2;

json read_object(std::string_view line, std::size_t depth) {
  auto read = json_text::read_json(line, depth, json_text::JsonManners::lenient,
                                   std::numeric_limits<std::size_t>::max(), proto::resource_keys);
  auto* object = std::get_if<json>(&read);
  if (object == nullptr || !object->is_object()) throw Error(EINVAL, "is not a JSON object");
  return std::move(*object);
}

/// Returns the keys of an object with the texts of their values.
std::map<std::string, std::string> read_members(std::string_view object) {
  std::map<std::string, std::string> members;
  json_text::JsonReader reader(object, own_depth, json_text::JsonManners::unique_keys);
  json value;
  const bool is_read = reader.object([&](std::string_view key) {
    if (!reader.opaque_value(value)) return false;
    return members.emplace(key, *json_text::opaque_text(value)).second;
  });
  if (!is_read || !reader.at_end()) throw Error(EINVAL, "is not a JSON object");
  return members;
}

/// Refuses a text other than the one that is written for what was read of it: it has an unknown key, or lacks
/// a part.
void require_same(std::string_view written_text, std::string_view read_text) {
  if (written_text == read_text) return;
  const json written = read_object(written_text, own_depth);
  const json read = read_object(read_text, own_depth);
  if (written == read) return;
  const json first = json::diff(written, read).front();
  throw Error(EINVAL, fmt::format("{}: {}", first.at("path").get<std::string>(),
                                  first.at("op") == "add" ? "is unknown" : "is not as a daemon writes it"));
}

std::string head_line(const StoreBase& base, Sequence last) {
  std::string timestamp;
  proto::append_number(timestamp, to_number(base.timestamp));
  return fmt::format(R"({}"format":{},"after":{},"timestamp":{},"last":{}}}}})"
                     "\n",
                     own_line, format, base.sequence, timestamp, last);
}

std::string event_line(std::string text, const std::string& rest) {
  if (rest.empty()) return text + '\n';
  text.pop_back();
  return fmt::format("{},{}{}}}\n", text, own_key, rest);
}

}  // namespace

bool is_complete(std::string_view first_line) noexcept { return first_line.starts_with(own_line); }

void CompleteWriter::put_document(const std::string& name, std::string_view text, std::string& lines) {
  if (!documents_.insert(name).second) return;
  lines += own_line;
  proto::append_member(lines, "document", text);
  lines += "}}\n";
}

std::string CompleteWriter::begin(const StoreBase& base, Sequence last) {
  std::string lines = head_line(base, last);
  if (!base.state) return lines;
  proto::Documents documents(os::sha256);
  const std::string state = proto::encode_state(*base.state, documents);
  for (const auto& [name, text] : documents.texts()) put_document(name, *text, lines);
  return fmt::format("{}{}\"snapshot\":{}}}}}\n", lines, own_line, state);
}

std::string CompleteWriter::add(const LoggedEvent& event, const proto::FindDocument& find) {
  std::string lines;
  (void)event_of(event, [&](const std::string& name) {
    proto::DocumentText text = find(name);
    put_document(name, *text, lines);
    return text;
  });
  return lines + event_line(event.text, *event.rest);
}

CompleteReader::CompleteReader(std::string_view first_line) {
  const json head = read_object(first_line, own_depth);
  try {
    const json& own = head.at("resourced");
    if (own.at("format") != format)
      throw Error(EINVAL, fmt::format("format {} is not {}, which this resourced reads",
                                      own.at("format").dump(), format));
    base_.sequence = at_ = own.at("after").get<Sequence>();
    base_.timestamp = timestamp_ = wall_time(own.at("timestamp").get<double>());
    last_ = own.at("last").get<Sequence>();
  } catch (const json::exception&) {
    throw Error(EINVAL, "is not the first line of a complete log");
  }
  require_same(head_line(base_, last_), first_line);
  if (at_ > last_ || last_ > StoreWriter::all_events) throw Error(EINVAL, "its events end before they begin");
}

proto::DocumentText CompleteReader::document(const std::string& name) const {
  const auto found = documents_.find(name);
  if (found == documents_.end()) throw Error(EINVAL, fmt::format("document {} is missing", name));
  return found->second;
}

std::optional<Record> CompleteReader::read(std::string_view line) {
  if (is_complete(line)) {
    read_own(line);
    return std::nullopt;
  }
  if (base_.sequence > 0 && !base_.state) throw Error(EINVAL, "the snapshot before the events is missing");
  const json entry = read_object(line, proto::max_json_depth);
  module::Event event = proto::decode_complete(entry, read_members(line)["resourced"],
                                               [this](const std::string& name) { return document(name); });
  if (event.timestamp < timestamp_) throw Error(EINVAL, "timestamp: is before that of the event before");
  timestamp_ = event.timestamp;
  module::require_next(module_.state(), event.body);
  const module::Outcome outcome = module_.apply(event);
  Record record = make_record(engine::make_record(++at_, std::move(event), outcome, module_));
  require_same(event_line(record.text, *record.rest), line);
  return record;
}

void CompleteReader::read_own(std::string_view line) {
  const auto all = read_members(line);
  const auto own = read_members(all.at("resourced"));
  if (all.size() > 1 || own.size() != 1)
    throw Error(EINVAL, "resourced: has neither a document nor a snapshot alone");
  const auto& [kind, text] = *own.begin();
  if (kind == "document" && text.starts_with('"')) {
    auto document = std::make_shared<const std::string>(json_text::value_of(text).get<std::string>());
    documents_.emplace(os::sha256(*document), std::move(document));
    return;
  }
  if (kind != "snapshot") throw Error(EINVAL, "resourced: has neither a document nor a snapshot alone");
  if (base_.state || base_.sequence == 0) throw Error(EINVAL, "a snapshot is not at the beginning");
  module::State state = proto::parse_state(text, [this](const std::string& name) { return document(name); });
  proto::Documents documents(os::sha256);
  require_same(proto::encode_state(state, documents), text);
  base_.state = std::make_shared<const module::State>(state);
  module_ = module::Module(std::move(state));
}

void CompleteReader::end() const {
  if (at_ != last_) throw Error(EINVAL, fmt::format("ends with event {}, not {}", at_, last_));
  if (base_.sequence > 0 && !base_.state) throw Error(EINVAL, "the snapshot is missing");
}

void write_complete(StoreWriter& store, const std::function<void(const std::string&)>& print) {
  StoreReader log(store.database(), store.hosts());
  PastReader past(store.database(), log);
  const Sequence last = log.last();
  StoreBase base;
  if (log.dropped() > 0 || !log.begins_complete()) base.sequence = past.reachable(log.dropped());
  if (base.sequence > 0) {
    base.timestamp = log.time_of(base.sequence);
    PastReader::Search search = past.begin_at(base.sequence);
    while (!search.is_done()) past.advance(search);
    base.state = std::make_shared<const module::State>(std::move(search.states));
  }
  CompleteWriter lines;
  print(lines.begin(base, last));
  EventFilter all;
  all.audiences = all_audiences;
  for (Sequence next = base.sequence + 1; next <= last;) {
    const HistoryPage page = log.page(all, next, last, StoreReader::most_looked_at);
    for (const LoggedEvent& event : page.events)
      print(lines.add(event, [&](const std::string& name) { return log.document(name); }));
    next = page.next;
  }
}

void export_complete(const std::string& directory, const std::function<void(const std::string&)>& print) {
  const bool is_there = read_copy(directory, [&](StoreWriter& store) { write_complete(store, print); });
  if (!is_there) throw Error(ENOENT, fmt::format("{}: there is no store", directory));
}

}  // namespace resourced::daemon::log
