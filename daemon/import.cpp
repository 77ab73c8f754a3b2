#include "daemon/import.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/module/drain_table.hpp"
#include "daemon/record.hpp"
#include "daemon/store.hpp"
#include "daemon/store_writer.hpp"
#include "proto/event_json.hpp"

namespace resourced::daemon {
namespace {

// Longer than any event of a real log: a nodelist of a million hosts that do not compress is about as long.
constexpr std::size_t max_line = std::size_t{16} << 20;

// Which hosts are drained as the log goes on. Ranks may be renumbered between its events, so hosts have
// numbers of their own here; a start maps them to the ranks of that day.
class DrainedHosts {
 public:
  void apply(const Event& event) {
    if (const auto* restart = std::get_if<RestartEvent>(&event.body)) {
      ranks_ = restart->ranks;
      hosts_ = restart->nodelist;
    } else if (const auto* drain = std::get_if<DrainEvent>(&event.body)) {
      table_.drain(numbers(drain->ranks, drain->nodelist), event.timestamp, drain->reason, drain->overwrite);
    } else if (const auto* undrain = std::get_if<UndrainEvent>(&event.body)) {
      table_.undrain(numbers(undrain->ranks, undrain->nodelist));
    } else if (const auto* update = std::get_if<UpdateEvent>(&event.body)) {
      if (update->expiration) expiration_ = {*update->expiration, 0};
    }
  }

  /// Adds what is drained at the end to the last record.
  void finish(Record& last) const {
    for (const auto& [key, numbers] : table_.groups()) {
      Hostlist hosts;
      numbers.for_each([&](IdSet::Id number) { hosts.append(names_.at(number)); });
      last.drained.push_back({{numbers, key.timestamp, key.reason}, std::move(hosts)});
    }
    last.expiration = expiration_;
  }

  [[nodiscard]] std::size_t count() const { return table_.ranks().count(); }

 private:
  IdSet numbers(const IdSet& ranks, const Hostlist& nodelist) {
    Hostlist hosts = nodelist;
    if (hosts.empty()) {
      // A log without nodelists: the ranks are those of the last restart.
      if (hosts_.size() != ranks_.count() || !ranks_.includes(ranks)) {
        throw Error(EINVAL,
                    "context.nodelist: is missing, and no restart event tells the hosts of the ranks");
      }
      IdSet positions;
      IdSet::Id position = 0;
      ranks_.for_each([&](IdSet::Id rank) {
        if (ranks.contains(rank)) positions.insert(position);
        ++position;
      });
      hosts = hosts_.select(positions);
    }
    IdSet result;
    hosts.for_each([&](std::string_view host) {
      const auto found = numbers_.try_emplace(std::string(host), static_cast<IdSet::Id>(names_.size()));
      if (found.second) names_.emplace_back(host);
      result.insert(found.first->second);
    });
    return result;
  }

  IdSet ranks_;
  Hostlist hosts_;
  std::map<std::string, IdSet::Id, std::less<>> numbers_;
  std::vector<std::string> names_;
  DrainTable table_;
  std::optional<RecordedState::Expiration> expiration_;
};

Hostlist hosts_of(const Event& event) {
  if (const auto* restart = std::get_if<RestartEvent>(&event.body)) return restart->nodelist;
  if (const auto* drain = std::get_if<DrainEvent>(&event.body)) return drain->nodelist;
  if (const auto* undrain = std::get_if<UndrainEvent>(&event.body)) return undrain->nodelist;
  return {};
}

Record read_line(std::string&& line, Sequence sequence, double last, DrainedHosts& drained) {
  const auto entry = nlohmann::json::parse(line, nullptr, false);
  if (entry.is_discarded()) throw Error(EINVAL, "not JSON");
  const auto event = proto::decode_event(entry);
  Record record;
  record.sequence = sequence;
  record.timestamp = std::max(last, entry["timestamp"].get<double>());
  record.name = entry["name"].get<std::string>();
  record.text = entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (event) {
    drained.apply(*event);
    record.hosts = hosts_of(*event);
  }
  return record;
}

}  // namespace

Imported import_events(std::istream& input, const std::string& name, const std::string& directory) {
  std::vector<Record> records;
  DrainedHosts drained;
  std::size_t number = 0;
  double last = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    if (line.empty()) continue;
    try {
      if (line.size() > max_line) throw Error(EFBIG, fmt::format("longer than {} bytes", max_line));
      records.push_back(read_line(std::move(line), records.size() + 1, last, drained));
    } catch (const Error& error) {
      throw Error(error.errnum(), fmt::format("{}:{}: {}", name, number, error.what()));
    }
    last = records.back().timestamp;
  }
  if (records.empty()) throw Error(EINVAL, fmt::format("{}: holds no events", name));
  drained.finish(records.back());

  StoreWriter writer(store_path(directory));
  if (writer.last_sequence() != 0) {
    throw Error(EEXIST,
                fmt::format("{}: holds events already; import into a new state directory", directory));
  }
  writer.commit(records);
  return {records.size(), drained.count()};
}

}  // namespace resourced::daemon
