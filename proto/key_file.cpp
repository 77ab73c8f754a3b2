// Key files, see key_file.hpp.
#include "proto/key_file.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "core/text/z85.hpp"
#include "os/file.hpp"

namespace resourced::proto {

namespace {

using Json = nlohmann::json;

// Maximum nesting. A key file has one level; with more allowed, the error of a nested value names its key.
constexpr std::size_t max_depth = 8;

[[noreturn]] void reject(const std::string& file, std::string_view what, int errnum = EINVAL) {
  throw Error(errnum, fmt::format("{}: {}", file, what));
}

std::string take(Json& object, const char* key, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end()) reject(file, fmt::format("{}: missing", key));
  if (!found->is_string()) reject(file, fmt::format("{}: not a string", key));
  auto value = found->get<std::string>();
  object.erase(found);
  return value;
}

std::string take_key(Json& object, const char* key, const std::string& file) {
  auto value = take(object, key, file);
  if (!text::is_z85_key(value)) reject(file, fmt::format("{}: not a key (40 characters of Z85)", key));
  return value;
}

enum class Privacy { required, any };

KeyFile load(const std::string& path, Privacy privacy) {
  const os::InputFile file(path);
  if (!S_ISREG(file.status().st_mode)) reject(path, "not a regular file");
  if (privacy == Privacy::required) file.require_secret();
  const auto text = file.read(max_key_file);
  if (!text) reject(path, "too large for a key file", EFBIG);
  return parse_key_file(*text, path);
}

}  // namespace

KeyFile parse_key_file(std::string_view text, const std::string& file) {
  auto read = read_json(text, max_depth, json_text::JsonManners::lenient);
  auto* const found = std::get_if<Json>(&read);
  if (found == nullptr || !found->is_object()) reject(file, "not a key file (a JSON object)");
  Json& object = *found;
  KeyFile keys;
  keys.name = take(object, "name", file);
  keys.public_key = take_key(object, "public-key", file);
  keys.secret_key = take_key(object, "secret-key", file);
  if (object.contains("server-key")) keys.server_key = take_key(object, "server-key", file);
  if (!object.empty()) {
    reject(file, fmt::format("{}: no such key", Json(object.begin().key()).dump(-1, ' ', true)));
  }
  return keys;
}

std::string format_key_file(const KeyFile& keys) {
  nlohmann::ordered_json object{
      {"name", keys.name}, {"public-key", keys.public_key}, {"secret-key", keys.secret_key}};
  if (!keys.server_key.empty()) object["server-key"] = keys.server_key;
  return object.dump(2) + '\n';
}

KeyFile load_key_file(const std::string& path) { return load(path, Privacy::required); }

std::string load_public_key(const std::string& path) { return load(path, Privacy::any).public_key; }

void create_key_file(const std::string& path, const KeyFile& keys) {
  const std::string text = format_key_file(keys);
  const os::Descriptor file = os::open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  try {
    os::write_all(file, text, path);
    os::sync(path);
    os::sync(std::filesystem::absolute(path).parent_path().string());
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace resourced::proto
