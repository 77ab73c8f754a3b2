#include "daemon/log/import.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/engine/engine.hpp"
#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/module/module.hpp"
#include "core/text/hostlist.hpp"
#include "core/text/quote.hpp"
#include "daemon/log/complete_log.hpp"
#include "daemon/log/imported_state.hpp"
#include "daemon/log/records.hpp"
#include "daemon/log/store.hpp"
#include "daemon/log/store_writer.hpp"
#include "proto/allocation_json.hpp"
#include "proto/event_json.hpp"
#include "proto/message.hpp"

namespace resourced::daemon::log {
namespace {

// The depth that a line may have: a journal response nests its events in an array in an object.
constexpr std::size_t max_depth = proto::max_json_depth - 2;

// The longest line of a complete log, which may have a snapshot: SQLite stores no longer text.
constexpr std::size_t max_complete_line = 1'000'000'000;

// Reads lines, and keeps at most max_line bytes of each.
class Lines {
 public:
  Lines(std::istream& input, std::size_t max_line) : input_(input), max_line_(max_line) {}

  void allow(std::size_t max_line) noexcept { max_line_ = max_line; }

  // Returns the next line; nothing at the end of the input.
  std::optional<std::string_view> next() {
    ++number_;
    line_.clear();
    char byte = 0;
    while (input_.get(byte) && byte != '\n') {
      if (line_.size() == max_line_) throw Error(EFBIG, fmt::format("longer than {} bytes", max_line_));
      line_ += byte;
    }
    if (input_.bad()) throw Error(EIO, "cannot be read");
    if (!input_ && line_.empty()) return std::nullopt;
    return line_;
  }

  [[nodiscard]] std::size_t number() const noexcept { return number_; }

 private:
  std::istream& input_;
  std::size_t max_line_;
  std::string line_;
  std::size_t number_ = 0;
};

nlohmann::json read_entry(std::string_view line) {
  auto read = read_json(line, max_depth, json_text::JsonManners::lenient,
                        std::numeric_limits<std::size_t>::max(), proto::resource_keys);
  if (auto* entry = std::get_if<nlohmann::json>(&read)) return std::move(*entry);
  if (std::get<json_text::JsonFault>(read).kind == json_text::JsonFault::Kind::depth)
    throw Error(EINVAL, fmt::format("nests deeper than {}", max_depth));
  throw Error(EINVAL, "not JSON");
}

// Refuses a bad nodelist in any event: a journal with `targets` parses the nodelists of stored events.
void check_nodelist(const nlohmann::json* context) {
  if (context == nullptr) return;
  const auto nodelist = context->find("nodelist");
  if (nodelist == context->end()) return;
  if (!nodelist->is_string()) throw Error(EINVAL, "context.nodelist: must be a string");
  try {
    (void)text::Hostlist::parse(nodelist->get_ref<const std::string&>());
  } catch (const Error& error) {
    throw Error(EINVAL, fmt::format("context.nodelist: {}", error.what()));
  }
}

module::DefineMethod method_of(const nlohmann::json* context) {
  if (context == nullptr || !context->contains("method")) throw Error(EINVAL, "context.method: is missing");
  const nlohmann::json& name = context->at("method");
  if (!name.is_string()) throw Error(EINVAL, "context.method: must be a string");
  const auto method = proto::parse_method_name(name.get_ref<const std::string&>());
  if (!method)
    throw Error(EINVAL, fmt::format("context.method: {} is no method of RFC 44",
                                    text::quoted(name.get_ref<const std::string&>())));
  return *method;
}

using Text = std::shared_ptr<const std::string>;

// Makes the record of a line, and applies its event to `state`. `resources` is R for the definitions of the
// log. Without it (null) they are hidden, as RFC 44 has R beside each.
Record read_line(std::string_view line, Sequence sequence, WallTime last, WallTime now, ImportedState& state,
                 const Text& resources) {
  nlohmann::json entry = read_entry(line);
  if (proto::read_event_entry(entry).timestamp > now) entry["timestamp"] = to_number(now);
  const auto event = proto::decode_event(entry);
  Record record;
  record.sequence = sequence;
  const proto::EventEntry parts = proto::read_event_entry(entry);
  if (event) check_nodelist(parts.context);
  record.timestamp = std::max(last, parts.timestamp);
  record.name = parts.name;
  record.audience = proto::audience_of(record.name);
  record.text = json_text::text_of(entry);
  if (event) {
    record.hosts = state.apply(*event);
  } else if (record.name == proto::define_name) {
    state.define(method_of(parts.context));
    record.resources = resources;
    if (resources == nullptr) record.audience = Audience::nobody;
  } else if (record.name == proto::truncate_name) {
    throw Error(EINVAL, "truncate: the log is incomplete, so it does not give the present state");
  }
  return record;
}

void refuse_absent(const module::TargetName& target, const rset::ResourceSet& inventory,
                   const std::string& what) {
  if (rank_of(target, inventory)) return;
  std::string name = target.host;
  if (target.ordinal != 0) name += fmt::format(" (its target {})", target.ordinal);
  throw Error(EINVAL, fmt::format("{} of {}, which is not in the configured inventory", what, name));
}

// Refuses a state that the first start after the import would refuse, and the inventory of another cluster.
// Targets that the last restart of the log did not have, and drains of targets that left for good are exempt:
// they go on waiting.
void check_start(const module::State& end, const ImportedState& state, const ImportOptions& options) {
  const rset::ResourceSet& inventory = *options.inventory;
  const std::set<module::TargetName> left(end.absent.shrunk.begin(), end.absent.shrunk.end());
  for (const module::RecordedDrain& drain : end.absent.drains) {
    if (state.has(drain.target) && !left.contains(drain.target))
      refuse_absent(drain.target, inventory, "the log has a drain");
  }
  for (const module::RecordedProperty& property : end.absent.properties) {
    if (!state.has(property.target)) continue;
    refuse_absent(property.target, inventory, fmt::format("the log changes the property {}", property.name));
  }
  module::DefineCommand start;
  start.inventory = options.inventory;
  start.partitions = options.partitions;
  (void)engine::Engine().step(engine::Start{std::move(start), end}, {wall_time(1), {}});
}

}  // namespace

Imported import_events(std::istream& input, const std::string& name, const std::string& directory,
                       const ImportOptions& options) {
  std::vector<Record> records;
  ImportedState state(options.configured_expiration, options.inventory);
  const Text resources =
      options.inventory ? std::make_shared<const std::string>(options.inventory->encode()) : nullptr;
  Lines lines(input, options.max_line);
  std::optional<CompleteReader> complete;
  WallTime last;
  std::size_t ahead = 0;
  try {
    while (const auto line = lines.next()) {
      if (line->empty()) continue;
      if (complete) {
        if (auto record = complete->read(*line)) records.push_back(*std::move(record));
      } else if (records.empty() && is_complete(*line)) {
        complete.emplace(*line);
        lines.allow(max_complete_line);
      } else {
        records.push_back(read_line(*line, records.size() + 1, last, options.now, state, resources));
        last = records.back().timestamp;
        if (last == options.now) ++ahead;
      }
    }
    if (complete) complete->end();
  } catch (const Error& error) {
    throw Error(error.errnum(), fmt::format("{}:{}: {}", name, lines.number(), error.what()));
  }
  const StoreBase base = complete ? complete->base() : StoreBase{};
  if (records.empty() && !base.state) throw Error(EINVAL, fmt::format("{}: holds no events", name));
  if (!complete) {
    const auto end = std::make_shared<const module::State>(state.finish());
    records.back().snapshot = end;
    if (options.inventory) {
      try {
        check_start(*end, state, options);
      } catch (const Error& error) {
        throw Error(error.errnum(), fmt::format("{}: {}", name, error.what()));
      }
    }
  }

  StoreWriter writer(store_path(directory));
  if (writer.last_sequence() != 0) {
    throw Error(EEXIST,
                fmt::format("{}: holds events already; import into a new state directory", directory));
  }
  writer.commit(records, base);
  if (!complete) return {records.size(), state.drained(), state.assumed(), ahead};
  const module::State& present = complete->state();
  return {records.size(), present.targets.drains.ranks().count() + present.absent.drains.size()};
}

}  // namespace resourced::daemon::log
