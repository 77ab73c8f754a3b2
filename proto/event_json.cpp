#include "proto/event_json.hpp"

#include <variant>

#include "core/invariant.hpp"
#include "core/module/allocations.hpp"
#include "proto/actor_json.hpp"
#include "proto/allocation_json.hpp"
#include "proto/drain_json.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {

using module::DefineMethod;

namespace {

// The text that ends the context and the entry.
constexpr std::string_view event_end = "}}";

// One overload for each type of event. Name gives its name, ContextWriter writes its context as the members
// of an object.
struct Name {
  std::string_view operator()(const module::RestartEvent&) const noexcept { return "restart"; }
  std::string_view operator()(const module::DefineEvent&) const noexcept { return define_name; }
  std::string_view operator()(const module::ExpirationEvent&) const noexcept { return "resource-update"; }
  std::string_view operator()(const module::PropertyEvent&) const noexcept { return "property-update"; }
  std::string_view operator()(const module::ShrinkEvent&) const noexcept { return "shrink"; }
  std::string_view operator()(const module::LossEvent&) const noexcept { return loss_name; }
  std::string_view operator()(const module::UnshrinkEvent&) const noexcept { return "unshrink"; }
  std::string_view operator()(const module::ForgetEvent&) const noexcept { return "forget"; }
  std::string_view operator()(const module::DrainEvent&) const noexcept { return "drain"; }
  std::string_view operator()(const module::UndrainEvent&) const noexcept { return "undrain"; }
  std::string_view operator()(const module::ScheduleEvent&) const noexcept { return "drain-schedule"; }
  std::string_view operator()(const module::CancelEvent&) const noexcept { return "drain-cancel"; }
  std::string_view operator()(const module::EvictEvent&) const noexcept { return evict_name; }
  std::string_view operator()(const module::OnlineEvent&) const noexcept { return "online"; }
  std::string_view operator()(const module::OfflineEvent&) const noexcept { return "offline"; }
  std::string_view operator()(const module::TorpidEvent&) const noexcept { return "torpid"; }
  std::string_view operator()(const module::LivelyEvent&) const noexcept { return "lively"; }
  std::string_view operator()(const module::AllocEvent&) const noexcept { return alloc_name; }
  std::string_view operator()(const module::AllocUpdateEvent&) const noexcept { return alloc_update_name; }
  std::string_view operator()(const module::FreeEvent&) const noexcept { return free_name; }
};

class ContextWriter {
 public:
  explicit ContextWriter(std::string& out) : out_(out) {}

  void operator()(const module::RestartEvent& event) {
    idset("ranks", event.ranks);
    idset("online", event.online);
    text("nodelist", event.nodelist.encode());
  }
  void operator()(const module::DefineEvent& event) { text("method", method_name(event.method)); }
  void operator()(const module::ExpirationEvent& event) { time("expiration", event.expiration); }
  void operator()(const module::PropertyEvent& event) {
    properties("property-add", event.added);
    properties("property-remove", event.removed);
    text("nodelist", event.nodelist.encode());
  }
  void operator()(const module::ShrinkEvent& event) { targets(event); }
  void operator()(const module::LossEvent& event) { targets(event); }
  void operator()(const module::UnshrinkEvent& event) { targets(event); }
  void operator()(const module::ForgetEvent& event) { text("nodelist", event.nodelist.encode()); }
  void operator()(const module::DrainEvent& event) {
    targets(event);
    if (event.reason) text("reason", *event.reason);
    overwrite(event.overwrite);
    append_terms(out_, event);
    flag("scheduled", event.scheduled);
  }
  void operator()(const module::UndrainEvent& event) {
    targets(event);
    if (event.reason) text("reason", *event.reason);
    overwrite(event.overwrite);
    flag("keeps-scheduled", event.keeps_scheduled);
  }
  void operator()(const module::ScheduleEvent& event) {
    targets(event);
    time("from", event.from);
    append_terms(out_, event);
    if (event.reason) text("reason", *event.reason);
  }
  void operator()(const module::CancelEvent& event) {
    targets(event);
    if (event.from) time("from", *event.from);
  }
  void operator()(const module::EvictEvent& event) {
    targets(event);
    text("partition", event.partition);
    if (event.holder) actor("holder", *event.holder);
    time("since", event.since);
    if (!event.reason.empty()) text("reason", event.reason);
  }
  void operator()(const module::OnlineEvent& event) { idset("idset", event.ranks); }
  void operator()(const module::OfflineEvent& event) { idset("idset", event.ranks); }
  void operator()(const module::TorpidEvent& event) { idset("idset", event.ranks); }
  void operator()(const module::LivelyEvent& event) { idset("idset", event.ranks); }
  void operator()(const module::AllocEvent& event) {
    append_key(out_, "allocations");
    // Thousands of allocations would make the text grow, and be copied, again and again.
    constexpr std::size_t keys = 80;
    std::size_t size = out_.size() + keys;
    for (const module::SharedAllocation& allocation : event.allocations)
      size += bytes_of(*allocation) + allocation->name.partition.size() + keys;
    out_.reserve(size);
    out_ += '[';
    for (const module::SharedAllocation& allocation : event.allocations) {
      if (out_.back() != '[') out_ += ',';
      append_allocation(out_, *allocation, std::nullopt);
    }
    out_ += ']';
  }
  void operator()(const module::AllocUpdateEvent& event) {
    text("id", event.name.id);
    text("partition", event.name.partition);
    if (event.expiration) time("expiration", *event.expiration);
    if (event.note) text("note", *event.note);
    if (!event.added.empty()) {
      append_key(out_, "added");
      out_ += event.added.encode();
    }
    text("nodelist", event.nodelist.encode());
  }
  void operator()(const module::FreeEvent& event) {
    append_key(out_, "ids");
    out_ += '[';
    for (const std::string& id : event.ids) {
      if (out_.back() != '[') out_ += ',';
      append_string(out_, id);
    }
    out_ += ']';
    if (event.partition) text("partition", *event.partition);
    if (event.partial) idset("idset", event.ranks);
    text("nodelist", event.nodelist.encode());
  }

 private:
  /// Writes the targets of an event, and their hosts.
  template <class Event>
  void targets(const Event& event) {
    idset("idset", event.ranks);
    text("nodelist", event.nodelist.encode());
  }
  void overwrite(module::Overwrite mode) {
    append_member(out_, "overwrite", static_cast<std::int64_t>(mode));
  }
  /// Writes a flag only if it is true.
  void flag(std::string_view key, bool value) {
    if (value) append_member(out_, key, true);
  }
  void actor(std::string_view key, const module::Actor& value) {
    append_key(out_, key);
    append_actor(out_, value);
  }
  void time(std::string_view key, WallTime value) { append_member(out_, key, value); }
  void idset(std::string_view key, const text::IdSet& ids) { append_member(out_, key, ids); }
  void text(std::string_view key, std::string_view value) { append_member(out_, key, value); }
  void properties(std::string_view key, const rset::ResourceSet::Properties& properties) {
    if (properties.empty()) return;
    append_key(out_, key);
    append_properties(out_, properties);
  }

  std::string& out_;
};

}  // namespace

std::string_view method_name(DefineMethod method) noexcept {
  switch (method) {
    case DefineMethod::configuration:
      return "configuration";
    case DefineMethod::dynamic_discovery:
      return "dynamic-discovery";
    case DefineMethod::reload:
      return "reload";
    case DefineMethod::job_info:
      return "job-info";
    case DefineMethod::kvs:
      return "kvs";
  }
  return "";
}

std::optional<DefineMethod> parse_method_name(std::string_view name) noexcept {
  for (const DefineMethod method : {DefineMethod::configuration, DefineMethod::dynamic_discovery,
                                    DefineMethod::reload, DefineMethod::job_info, DefineMethod::kvs}) {
    if (method_name(method) == name) return method;
  }
  return std::nullopt;
}

std::string_view event_name(const module::EventBody& body) noexcept { return std::visit(Name{}, body); }

std::string encode_event(const module::Event& event) {
  std::string out = "{";
  append_member(out, "timestamp", event.timestamp);
  append_member(out, "name", event_name(event.body));
  append_key(out, "context");
  out += '{';
  std::visit(ContextWriter{out}, event.body);
  if (event.by) {
    append_key(out, "by");
    append_actor(out, *event.by);
  }
  out += event_end;
  return out;
}

namespace {

/// Writes the members of an object, which is none without members.
class RestWriter {
 public:
  RestWriter(const DocumentText& resources, Documents& documents)
      : resources_(resources), documents_(documents) {}

  void operator()(const module::RestartEvent& event) {
    flag("brokers", event.of_brokers);
    if (event.drains.empty()) return;
    key("drains");
    out_ += '[';
    for (const module::DrainGroup& drain : event.drains) {
      if (out_.back() != '[') out_ += ',';
      append_drain_group(out_, drain);
    }
    out_ += ']';
  }
  void operator()(const module::DefineEvent& event) {
    text("R", documents_.add(resources_));
    if (event.configured && *event.configured != *event.inventory)
      text("configured", documents_.add(event.configured->encode()));
    if (!event.exclude.empty()) {
      key("exclude");
      append_idset(out_, event.exclude);
    }
    if (!event.kept_properties.empty()) {
      key("properties");
      append_properties(out_, event.kept_properties);
    }
    if (!event.loaded) return;
    flag("loaded", true);
    if (event.loaded->replaced) text("replaced", documents_.add(*event.loaded->replaced));
  }
  template <class Other>
  void operator()(const Other& /*event*/) {}

  [[nodiscard]] std::string take() {
    if (!out_.empty()) out_ += '}';
    return std::move(out_);
  }

 private:
  void key(std::string_view name) {
    if (out_.empty()) out_ = "{";
    append_key(out_, name);
  }
  void flag(std::string_view name, bool value) {
    if (!value) return;
    key(name);
    out_ += "true";
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    append_string(out_, value);
  }

  const DocumentText& resources_;
  Documents& documents_;
  std::string out_;
};

}  // namespace

std::string encode_rest(const module::Event& event, const DocumentText& resources, Documents& documents) {
  RestWriter writer(resources, documents);
  std::visit([&](const auto& body) { writer(body); }, event.body);
  return writer.take();
}

std::string without_actor(std::string line, const std::optional<module::Actor>& by) {
  if (!by) return line;
  std::string end = R"("by":)";
  append_actor(end, *by);
  end += event_end;
  RESOURCED_INVARIANT(line.ends_with(end));
  line.resize(line.size() - end.size());
  if (line.ends_with(',')) line.pop_back();
  line += event_end;
  return line;
}

}  // namespace resourced::proto
