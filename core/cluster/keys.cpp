#include "core/cluster/keys.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/json/reader.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::cluster {

using nlohmann::json;

namespace {

void check_format(std::uint64_t format) {
  if (format < log_format) refuse_older("log");
  if (format == log_format) return;
  throw Error(EPROTONOSUPPORT,
              fmt::format("the log in etcd has format {}, and this version reads format {} only: "
                          "upgrade this daemon",
                          format, log_format));
}

/// As members write it; nothing for a text that may have the same meaning.
std::optional<EntryHeader> plain_header(std::string_view text) {
  EntryHeader header;
  std::uint64_t format = 0;
  const auto take = [&text](std::string_view name, auto& number) {
    if (!text.starts_with(name)) return false;
    const auto [end, error] = std::from_chars(text.data() + name.size(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  const bool is_plain = take(R"({"epoch":)", header.epoch) && take(R"(,"first":)", header.first) &&
                        take(R"(,"format":)", format) && take(R"(,"parts":)", header.parts) && text == "}";
  if (!is_plain) return std::nullopt;
  check_format(format);
  return header;
}

EntryHeader header_in(const std::string& key, std::string_view text) {
  if (const auto header = plain_header(text)) return *header;
  const json object = object_of(key, text);
  const bool has_format = object.contains("format");
  if (has_format) check_format(number_of(key, object, "format"));
  EntryHeader header;
  header.first = number_of(key, object, "first");
  header.epoch = static_cast<Revision>(number_of(key, object, "epoch"));
  header.parts = number_of(key, object, "parts");
  if (!has_format) refuse_older("log");
  return header;
}

}  // namespace

// '0' follows '/', so this ends the keys of a folder.
std::string end_of(std::string_view folder) { return std::string(folder) + '0'; }
std::string log_key(Sequence sequence) { return fmt::format("{}/{:020}", log_folder, sequence); }
std::string part_folder(Sequence sequence) { return fmt::format("part/{:020}", sequence); }
std::string part_key(Sequence sequence, Revision epoch, std::size_t index) {
  return fmt::format("{}/{:020}/{:020}", part_folder(sequence), epoch, index);
}
std::string member_key(const std::string& name) { return fmt::format("{}/{}", members_folder, name); }

json object_of(const std::string& key, std::string_view text) {
  constexpr std::size_t depth = 4;
  constexpr std::size_t most_values = 64;
  auto value = json_text::read_json(text, depth, json_text::JsonManners::strict, most_values);
  auto* read = std::get_if<json>(&value);
  if (read == nullptr || !read->is_object()) throw Garbled(key);
  return std::move(*read);
}

std::uint64_t number_of(const std::string& key, const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) throw Garbled(key);
  return found->get<std::uint64_t>();
}

std::string text_of(const std::string& key, const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) throw Garbled(key);
  return found->get<std::string>();
}

Sequence sequence_of(const KeyValue& head) {
  const auto sequence = text::whole_number<Sequence>(head.value);
  if (!sequence) throw Garbled(head.key);
  return *sequence;
}

Sequence last_in_entry(const std::string& log_key) {
  const std::size_t begin = std::min(log_key.size(), log_folder.size() + 1);
  const auto sequence = text::whole_number<Sequence>(std::string_view(log_key).substr(begin));
  if (!sequence) throw Garbled(log_key);
  return *sequence;
}

EntryHeader entry_header(const KeyValue& entry) {
  const std::size_t line = entry.value.find('\n');
  if (line == std::string::npos) throw Garbled(entry.key);
  EntryHeader header = header_in(entry.key, std::string_view(entry.value).substr(0, line));
  header.last = last_in_entry(entry.key);
  header.text = line + 1;
  if (header.first == 0 || header.last < header.first) throw Garbled(entry.key);
  return header;
}

void refuse_older(std::string_view what) {
  throw Error(EPROTONOSUPPORT,
              fmt::format("the {} in etcd was written by a version before 0.1.0, which this version does not "
                          "read: give the cluster another prefix, or delete all keys below this one",
                          what));
}

void check_found(const TransactionDone& done, std::size_t reads) {
  if (done.found.size() != reads) throw Error(EBADMSG, "etcd has not answered all of a transaction");
}

}  // namespace resourced::cluster
