// Endpoint addresses, see uri.hpp.
#include "proto/uri.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text/quote.hpp"
#include "core/text/whole_number.hpp"

namespace resourced::proto {
namespace {

constexpr std::string_view separator = "://";
constexpr std::array<std::pair<std::string_view, Scheme>, 3> schemes{
    {{"ipc", Scheme::ipc}, {"tcp", Scheme::tcp}, {"local", Scheme::local}}};

/// The address that is being parsed, to quote it in an error.
class Subject {
 public:
  explicit Subject(std::string_view uri) : uri_(uri) {}

  [[noreturn]] void reject(const std::string& what, int errnum = EINVAL) const {
    throw Error(errnum, fmt::format("{}: {}", text::quoted(uri_), what));
  }

 private:
  std::string_view uri_;
};

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7F'; }

bool is_host_char(char c) {
  return (c >= '0' && c <= '9') || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '.' || c == '-' ||
         c == '_';
}

Scheme parse_scheme(const Subject& subject, std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
  for (const auto& [known, scheme] : schemes) {
    if (lower == known) {
      return scheme;
    }
  }
  subject.reject("the scheme is none of ipc, tcp and local");
}

/// Removes empty and "." components. ".." stays, because its target depends on symbolic links.
std::string normal_path(std::string_view path) {
  std::string result;
  if (path.starts_with('/')) {
    result.push_back('/');
  }
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto component = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (component.empty() || component == ".") {
      continue;
    }
    if (!result.empty() && result.back() != '/') {
      result.push_back('/');
    }
    result.append(component);
  }
  return result;
}

std::string parse_path(const Subject& subject, std::string_view text) {
  if (text.empty()) {
    subject.reject("no path");
  }
  if (std::any_of(text.begin(), text.end(), is_control)) {
    subject.reject("control character in the path");
  }
  if (text.front() == '@') {
    subject.reject("abstract sockets are not supported, as they have no access permissions");
  }
  if (text == "*") {
    subject.reject("the path must be given");
  }
  if (text.ends_with('/') || text.ends_with("/.") || text.ends_with("/..") || text == "." || text == "..") {
    subject.reject("the path names a directory");
  }
  auto path = normal_path(text);
  if (path.size() > max_socket_path) {
    subject.reject(fmt::format("the path has {} bytes, a socket can have {}", path.size(), max_socket_path),
                   ENAMETOOLONG);
  }
  return path;
}

std::string parse_ipv6(const Subject& subject, std::string_view text) {
  std::string address(text);
  in6_addr parsed{};
  // inet_pton() would stop at a NUL.
  if (address.find('\0') != std::string::npos || inet_pton(AF_INET6, address.c_str(), &parsed) != 1) {
    subject.reject("not an IPv6 address in brackets");
  }
  std::array<char, INET6_ADDRSTRLEN> canonical{};
  inet_ntop(AF_INET6, &parsed, canonical.data(), static_cast<socklen_t>(canonical.size()));
  return canonical.data();
}

std::string parse_host(const Subject& subject, std::string_view text, EndpointUse use) {
  if (text == "*") {
    if (use == EndpointUse::connect) {
      subject.reject("a host to connect to is needed");
    }
    return "*";
  }
  if (text.starts_with('[') && text.ends_with(']')) {
    return parse_ipv6(subject, text.substr(1, text.size() - 2));
  }
  if (text.empty()) {
    subject.reject("no host");
  }
  if (!std::all_of(text.begin(), text.end(), is_host_char)) {
    subject.reject(text.find(':') == std::string_view::npos ? "invalid character in the host"
                                                            : "an IPv6 address needs brackets");
  }
  std::string host(text);
  std::transform(host.begin(), host.end(), host.begin(), to_lower);
  return host;
}

std::uint16_t parse_port(const Subject& subject, std::string_view text, EndpointUse use) {
  std::uint16_t port = 0;
  if (text != "*") {
    const auto number = text::whole_number<std::uint16_t>(text);
    if (!number) subject.reject("the port is not a number up to 65535");
    port = *number;
  }
  if (port == 0 && use == EndpointUse::connect) {
    subject.reject("a port to connect to is needed");
  }
  return port;
}

}  // namespace

std::string Endpoint::uri() const {
  const auto* const name = std::find_if(schemes.begin(), schemes.end(),
                                        [this](const auto& entry) { return entry.second == scheme; });
  std::string text(name->first);
  text += separator;
  if (scheme != Scheme::tcp) {
    return text + path;
  }
  text += host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
  return text + (port == 0 ? ":*" : fmt::format(":{}", port));
}

std::vector<std::string> split_uris(std::string_view uris) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < uris.size(); ++at) {
    const std::string_view rest = uris.substr(at + 1);
    const auto follows = [rest](const auto& entry) {
      return rest.starts_with(entry.first) && rest.substr(entry.first.size()).starts_with(separator);
    };
    if (uris[at] != ',' || std::ranges::none_of(schemes, follows)) continue;
    parts.emplace_back(uris.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.emplace_back(uris.substr(begin));
  return parts;
}

Endpoint parse_endpoint(std::string_view uri, EndpointUse use) {
  const Subject subject(uri);
  const auto end = uri.find(separator);
  if (end == std::string_view::npos) {
    subject.reject("expected ipc://PATH, tcp://HOST:PORT or local://PATH");
  }
  Endpoint endpoint;
  endpoint.scheme = parse_scheme(subject, uri.substr(0, end));
  const auto address = uri.substr(end + separator.size());
  if (endpoint.scheme != Scheme::tcp) {
    endpoint.path = parse_path(subject, address);
    return endpoint;
  }
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || address.ends_with(']')) {
    subject.reject("no port");
  }
  endpoint.host = parse_host(subject, address.substr(0, colon), use);
  endpoint.port = parse_port(subject, address.substr(colon + 1), use);
  return endpoint;
}

namespace {

std::optional<std::string> directory(const Environment& environment, const std::string& variable,
                                     std::string_view below = {}) {
  auto value = environment(variable);
  if (!value || !value->starts_with('/')) {
    return std::nullopt;
  }
  return value->append(below);
}

/// Returns the first directory in a variable of systemd, which lists several if a unit has them.
std::optional<std::string> first_directory(const Environment& environment, const std::string& variable) {
  auto value = directory(environment, variable);
  if (value) {
    value->erase(std::min(value->find(':'), value->size()));
  }
  return value;
}

/// Returns runtime directories in the order of preference; never empty.
std::vector<std::string> runtime_directories(const Environment& environment) {
  std::vector<std::string> directories;
  if (auto own = first_directory(environment, "RUNTIME_DIRECTORY")) {
    directories.push_back(*own);
  }
  if (auto user = directory(environment, "XDG_RUNTIME_DIR", "/resourced")) {
    directories.push_back(*user);
  }
  directories.emplace_back("/run/resourced");
  return directories;
}

}  // namespace

std::string runtime_directory(const Environment& environment) {
  return runtime_directories(environment).front();
}

std::string default_bus_uri(const Environment& environment) {
  return "ipc://" + runtime_directory(environment) + "/bus";
}

std::string default_local_uri(const Environment& environment) {
  return "local://" + runtime_directory(environment) + "/local";
}

std::string client_uri(const Environment& environment, const FileTest& exists, const FileTest& may_connect) {
  if (const auto uri = environment("RESOURCED_URI"); uri && !uri->empty()) {
    return *uri;
  }
  for (const FileTest& fits : {may_connect, exists}) {
    for (const auto& directory : runtime_directories(environment)) {
      if (fits(directory + "/bus")) return "ipc://" + directory + "/bus";
      if (fits(directory + "/local")) return "local://" + directory + "/local";
    }
  }
  return default_bus_uri(environment);
}

std::string state_directory(const Environment& environment) {
  if (const auto own = first_directory(environment, "STATE_DIRECTORY")) {
    return *own;
  }
  if (const auto user = directory(environment, "XDG_STATE_HOME", "/resourced")) {
    return *user;
  }
  if (const auto home = directory(environment, "HOME", "/.local/state/resourced")) {
    return *home;
  }
  throw Error(EINVAL, "no state directory: none of $STATE_DIRECTORY, $XDG_STATE_HOME and $HOME is set");
}

}  // namespace resourced::proto
