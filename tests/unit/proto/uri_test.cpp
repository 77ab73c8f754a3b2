// Endpoint addresses, and the defaults when none is given.
#include "proto/uri.hpp"

#include <map>
#include <set>

#include <doctest/doctest.h>

#include "tools.hpp"

using namespace resourced::proto;
using namespace resourced::proto::test;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

FileTest only(const std::set<std::string>& paths) {
  return [paths](const std::string& path) { return paths.contains(path); };
}

}  // namespace

TEST_CASE("addresses and their canonical form") {
  struct Row {
    const char* text;
    Endpoint endpoint;
    const char* canonical;
  };
  const Row rows[] = {
      {"ipc:///run/resourced/bus", {Scheme::ipc, "/run/resourced/bus", "", 0}, "ipc:///run/resourced/bus"},
      {"local:///run/resourced/local",
       {Scheme::local, "/run/resourced/local", "", 0},
       "local:///run/resourced/local"},
      {"ipc:////run//resourced/./bus",
       {Scheme::ipc, "/run/resourced/bus", "", 0},
       "ipc:///run/resourced/bus"},
      {"ipc:///a/../b", {Scheme::ipc, "/a/../b", "", 0}, "ipc:///a/../b"},
      {"ipc://./bus", {Scheme::ipc, "bus", "", 0}, "ipc://bus"},
      {"ipc:///a:b c/x", {Scheme::ipc, "/a:b c/x", "", 0}, "ipc:///a:b c/x"},
      {"IPC:///Bus", {Scheme::ipc, "/Bus", "", 0}, "ipc:///Bus"},
      {"tcp://127.0.0.1:5555", {Scheme::tcp, "", "127.0.0.1", 5555}, "tcp://127.0.0.1:5555"},
      {"tcp://Node-1.Example:05555", {Scheme::tcp, "", "node-1.example", 5555}, "tcp://node-1.example:5555"},
      {"tcp://[::1]:1", {Scheme::tcp, "", "::1", 1}, "tcp://[::1]:1"},
      {"tcp://[0:0::0001]:65535", {Scheme::tcp, "", "::1", 65535}, "tcp://[::1]:65535"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    for (const auto use : {EndpointUse::listen, EndpointUse::connect}) {
      const auto endpoint = parse_endpoint(row.text, use);
      CHECK(endpoint == row.endpoint);
      CHECK(endpoint.uri() == row.canonical);
      CHECK(parse_endpoint(endpoint.uri(), use) == endpoint);
    }
  }
}

TEST_CASE("only a listener may leave host and port open") {
  struct Row {
    const char* text;
    const char* canonical;
  };
  const Row rows[] = {{"tcp://*:5555", "tcp://*:5555"},
                      {"tcp://127.0.0.1:*", "tcp://127.0.0.1:*"},
                      {"tcp://127.0.0.1:0", "tcp://127.0.0.1:*"}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(parse_endpoint(row.text, EndpointUse::listen).uri() == row.canonical);
    CHECK(errnum_of([&] { return parse_endpoint(row.text, EndpointUse::connect); }) == EINVAL);
  }
}

TEST_CASE("what is no address is EINVAL, and the text quotes it on one line") {
  struct Row {
    std::string text;
    const char* error;
  };
  const Row rows[] = {
      {"", "\"\": expected ipc://PATH, tcp://HOST:PORT or local://PATH"},
      {"/run/bus", "\"/run/bus\": expected ipc://"},
      {"ipc:/run/bus", "expected ipc://"},
      {"://x", "the scheme is none of"},
      {"http://x:80", "\"http://x:80\": the scheme is none of ipc, tcp and local"},
      {"inproc://x", "the scheme is none of"},
      {"ipc://", "no path"},
      {"local://", "no path"},
      {"ipc:///run/", "names a directory"},
      {"ipc:///", "names a directory"},
      {"ipc://..", "names a directory"},
      {"ipc:///run/.", "names a directory"},
      {"ipc://@bus", "abstract"},
      {"ipc://*", "the path must be given"},
      {std::string("ipc:///a\0b", 10), "control character"},
      {"ipc:///a\nb", "\"ipc:///a\\x0ab\": control character"},
      {"tcp://", "no port"},
      {"tcp://host", "no port"},
      {"tcp://:5555", "no host"},
      {"tcp://host:", "the port is not a number"},
      {"tcp://host:x", "the port is not a number"},
      {"tcp://host:-1", "the port is not a number"},
      {"tcp://host:+1", "the port is not a number"},
      {"tcp://host:1x", "the port is not a number"},
      {"tcp://host:65536", "the port is not a number up to 65535"},
      {"tcp://::1:5555", "needs brackets"},
      {"tcp://[::1]", "no port"},
      {"tcp://[::g]:1", "not an IPv6 address"},
      {"tcp://[]:1", "not an IPv6 address"},
      {std::string("tcp://[::1\0]:1", 14), "not an IPv6 address"},
      {"tcp://a;b:1", "invalid character"},
      {"tcp://a/b:1", "invalid character"},
      {"tcp://user@host:1", "invalid character"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const auto parse_it = [&] { return parse_endpoint(row.text, EndpointUse::listen); };
    CHECK(errnum_of(parse_it) == EINVAL);
    const auto text = error_of(parse_it);
    CAPTURE(text);
    CHECK(text.find(row.error) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("a path fits into a socket address") {
  const auto fits = "/" + std::string(106, 'p');
  const auto too_long = fits + "p";
  // The length of the normalized path counts.
  const auto unnormal = "///." + fits;
  for (const std::string scheme : {"ipc://", "local://"}) {
    CHECK(parse_endpoint(scheme + fits, EndpointUse::listen).path == fits);
    CHECK(parse_endpoint(scheme + unnormal, EndpointUse::connect).path == fits);
    CHECK(errnum_of([&] { return parse_endpoint(scheme + too_long, EndpointUse::listen); }) == ENAMETOOLONG);
  }
  CHECK(error_of([&] {
          return parse_endpoint("ipc://" + too_long, EndpointUse::listen);
        }).find("the path has 108 bytes, a socket can have 107") != std::string::npos);
}

TEST_CASE("defaults of the daemon") {
  struct Row {
    Variables variables;
    const char* bus;
    const char* local;
  };
  const Row rows[] = {
      {{}, "ipc:///run/resourced/bus", "local:///run/resourced/local"},
      {{{"XDG_RUNTIME_DIR", "/run/user/7"}},
       "ipc:///run/user/7/resourced/bus",
       "local:///run/user/7/resourced/local"},
      {{{"RUNTIME_DIRECTORY", "/run/r"}, {"XDG_RUNTIME_DIR", "/run/user/7"}},
       "ipc:///run/r/bus",
       "local:///run/r/local"},
      {{{"RUNTIME_DIRECTORY", "/run/r:/run/s"}}, "ipc:///run/r/bus", "local:///run/r/local"},
      {{{"RUNTIME_DIRECTORY", ""}, {"XDG_RUNTIME_DIR", ""}},
       "ipc:///run/resourced/bus",
       "local:///run/resourced/local"},
      {{{"RUNTIME_DIRECTORY", "r"}, {"XDG_RUNTIME_DIR", "x"}},
       "ipc:///run/resourced/bus",
       "local:///run/resourced/local"},
      {{{"RESOURCED_URI", "tcp://host:1"}}, "ipc:///run/resourced/bus", "local:///run/resourced/local"},
  };
  for (const auto& row : rows) {
    CHECK(default_bus_uri(environment(row.variables)) == row.bus);
    CHECK(default_local_uri(environment(row.variables)) == row.local);
  }
}

TEST_CASE("default of a client") {
  const Variables none;
  const Variables login{{"XDG_RUNTIME_DIR", "/run/user/7"}};
  const Variables unit{{"RUNTIME_DIRECTORY", "/run/r"}, {"XDG_RUNTIME_DIR", "/run/user/7"}};
  const std::string system = "/run/resourced/bus";
  const std::string user = "/run/user/7/resourced/bus";
  struct Row {
    Variables variables;
    std::set<std::string> buses;
    std::string uri;
  };
  const Row rows[] = {
      {none, {}, "ipc:///run/resourced/bus"},
      {none, {system}, "ipc:///run/resourced/bus"},
      {login, {}, "ipc:///run/user/7/resourced/bus"},
      {login, {user, system}, "ipc:///run/user/7/resourced/bus"},
      {login, {system}, "ipc:///run/resourced/bus"},
      {unit, {"/run/r/bus", user, system}, "ipc:///run/r/bus"},
      {unit, {user, system}, "ipc:///run/user/7/resourced/bus"},
      {unit, {}, "ipc:///run/r/bus"},
      {{{"RESOURCED_URI", "tcp://host:1"}, {"RUNTIME_DIRECTORY", "/run/r"}}, {"/run/r/bus"}, "tcp://host:1"},
      {{{"RESOURCED_URI", ""}}, {}, "ipc:///run/resourced/bus"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.uri);
    CHECK(client_uri(environment(row.variables), only(row.buses), only(row.buses)) == row.uri);
  }
}

TEST_CASE("a client takes the socket that it may connect to") {
  const Variables login{{"XDG_RUNTIME_DIR", "/run/user/7"}};
  const std::string bus = "/run/resourced/bus";
  const std::string local = "/run/resourced/local";
  const std::string own = "/run/user/7/resourced/local";
  struct Row {
    std::set<std::string> there;
    std::set<std::string> permitted;
    std::string uri;
  };
  for (const Row& row : {Row{{bus, local}, {bus, local}, "ipc:///run/resourced/bus"},
                         Row{{bus, local}, {local}, "local:///run/resourced/local"},
                         Row{{bus, local, own}, {local, own}, "local:///run/user/7/resourced/local"},
                         Row{{bus, local, own}, {local}, "local:///run/resourced/local"},
                         // Without a permitted socket, the error names an existing one.
                         Row{{bus, local}, {}, "ipc:///run/resourced/bus"},
                         Row{{local}, {}, "local:///run/resourced/local"}}) {
    CAPTURE(row.uri);
    CHECK(client_uri(environment(login), only(row.there), only(row.permitted)) == row.uri);
  }
}

TEST_CASE("a comma separates URIs where a scheme follows it") {
  const auto split = [](std::string_view text) { return split_uris(text); };
  using List = std::vector<std::string>;
  CHECK(split("") == List{""});
  CHECK(split("ipc:///a,b") == List{"ipc:///a,b"});
  CHECK(split("ipc:///a,tcp://b:1,local:///c") == List{"ipc:///a", "tcp://b:1", "local:///c"});
  CHECK(split("ipc:///a,") == List{"ipc:///a,"});
}

TEST_CASE("default state directory") {
  const Variables all{
      {"STATE_DIRECTORY", "/var/lib/resourced:/var/lib/more"}, {"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}};
  CHECK(state_directory(environment(all)) == "/var/lib/resourced");
  CHECK(state_directory(environment({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}})) == "/s/resourced");
  CHECK(state_directory(environment({{"XDG_STATE_HOME", "s"}, {"HOME", "/h"}})) ==
        "/h/.local/state/resourced");
  CHECK(state_directory(environment({{"HOME", "/h"}})) == "/h/.local/state/resourced");
  CHECK(errnum_of([] { return state_directory(environment({})); }) == EINVAL);
  CHECK(error_of([] { return state_directory(environment({})); }).find("$STATE_DIRECTORY") !=
        std::string::npos);
}
