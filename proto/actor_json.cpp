#include "proto/actor_json.hpp"

#include <cerrno>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "proto/json_text.hpp"

namespace resourced::proto {
namespace {

using nlohmann::json;

class ActorWriter {
 public:
  explicit ActorWriter(std::string& out) : out_(out) {}

  void operator()(const module::ByUser& user) { append_integer(out_, user.id); }
  void operator()(const module::BySignal& signal) { append_string(out_, signal.name); }
  void operator()(const module::ByKey& key) { append_string(out_, key.name); }
  void operator()(const module::ByAddress& address) { append_string(out_, address.name); }
  void operator()(const module::ByHost& host) { append_string(out_, host.name); }

 private:
  std::string& out_;
};

std::optional<module::Actor> named_actor(const std::string& key, const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (key == "key") return module::ByKey{name};
  if (key == "address") return module::ByAddress{name};
  if (key == "host") return module::ByHost{name};
  if (key == "signal") return module::BySignal{name};
  return std::nullopt;
}

std::optional<module::Actor> find_actor(const json& value) {
  if (!value.is_object() || value.size() != 1) return std::nullopt;
  const json& name = *value.begin();
  const std::string& key = value.begin().key();
  if (name.is_string()) return named_actor(key, name.get_ref<const std::string&>());
  if (key != "userid" || !name.is_number_integer()) return std::nullopt;
  const bool is_id = name.is_number_unsigned() ? std::in_range<std::uint32_t>(name.get<std::uint64_t>())
                                               : std::in_range<std::uint32_t>(name.get<std::int64_t>());
  if (!is_id) return std::nullopt;
  return module::ByUser{name.get<std::uint32_t>()};
}

}  // namespace

std::string_view actor_key(const module::Actor& actor) noexcept {
  struct Key {
    std::string_view operator()(const module::ByUser& /*user*/) const noexcept { return "userid"; }
    std::string_view operator()(const module::BySignal& /*signal*/) const noexcept { return "signal"; }
    std::string_view operator()(const module::ByKey& /*key*/) const noexcept { return "key"; }
    std::string_view operator()(const module::ByAddress& /*address*/) const noexcept { return "address"; }
    std::string_view operator()(const module::ByHost& /*host*/) const noexcept { return "host"; }
  };
  return std::visit(Key{}, actor);
}

void append_actor(std::string& out, const module::Actor& actor) {
  out += '{';
  append_key(out, actor_key(actor));
  std::visit(ActorWriter{out}, actor);
  out += '}';
}

std::string encode_actor(const module::Actor& actor) {
  std::string out;
  append_actor(out, actor);
  return out;
}

json actor_to_json(const module::Actor& actor) {
  if (const auto* user = std::get_if<module::ByUser>(&actor)) return {{actor_key(actor), user->id}};
  return {{actor_key(actor), actor_name(actor)}};
}

std::string actor_name(const module::Actor& actor) {
  struct Name {
    std::string operator()(const module::ByUser& user) const { return std::to_string(user.id); }
    std::string operator()(const module::BySignal& signal) const { return signal.name; }
    std::string operator()(const module::ByKey& key) const { return key.name; }
    std::string operator()(const module::ByAddress& address) const { return address.name; }
    std::string operator()(const module::ByHost& host) const { return host.name; }
  };
  return std::visit(Name{}, actor);
}

module::Actor read_actor(const json& value) {
  if (auto actor = find_actor(value)) return *std::move(actor);
  throw Error(EINVAL, "must be an object with one of userid, key, address, host and signal");
}

}  // namespace resourced::proto
