#include "harness/etcd.hpp"

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace resourced::test {
namespace {

// Ports that were free a moment ago, as etcd cannot choose its own ones.
std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<int> sockets;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(descriptor, any, size) != 0 || getsockname(descriptor, any, &size) != 0)
      throw std::runtime_error("no free port");
    sockets.push_back(descriptor);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int descriptor : sockets) close(descriptor);
  return ports;
}

bool takes_connections(std::uint16_t port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool is_taken = connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(descriptor);
  return is_taken;
}

}  // namespace

Etcd::Etcd(EtcdOptions options) : options_(std::move(options)), members_(options_.members) {
  const std::vector<std::uint16_t> ports = free_ports(2 * members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].client_port = ports[2 * i];
    members_[i].peer_port = ports[2 * i + 1];
  }
  for (std::size_t i = 0; i < members_.size(); ++i) start(i);
  until_serving();
}

void Etcd::until_serving() const {
  // After a refused connection etcdctl would wait for a second, so wait for the ports first.
  const e2e::Deadline deadline(std::chrono::seconds(60));
  for (const Member& member : members_) {
    while (!takes_connections(member.client_port) && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // The answer comes once there is a leader.
  (void)control({"get", "none"});
}

void Etcd::repair() {
  bool was_broken = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].process == nullptr) {
      start(i);
      was_broken = true;
    } else {
      members_[i].process->signal(SIGCONT);
    }
  }
  if (was_broken) until_serving();
}

std::string Etcd::url(std::uint16_t port, bool of_client) const {
  return fmt::format("{}://127.0.0.1:{}", of_client && !options_.tls.empty() ? "https" : "http", port);
}

std::vector<std::string> Etcd::urls() const {
  std::vector<std::string> urls;
  for (const Member& member : members_) urls.push_back(url(member.client_port, true));
  return urls;
}

std::string Etcd::toml() const {
  std::string list;
  for (const std::string& one : urls()) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", one);
  return "[" + list + "]";
}

void Etcd::kill(std::size_t member) { members_.at(member).process.reset(); }

void Etcd::start(std::size_t index) {
  std::string peers;
  for (std::size_t i = 0; i < members_.size(); ++i)
    peers += fmt::format("{}e{}={}", i == 0 ? "" : ",", i, url(members_[i].peer_port, false));
  Member& member = members_.at(index);
  const std::string client = url(member.client_port, true);
  const std::string peer = url(member.peer_port, false);
  std::vector<std::string> command{etcd_program,
                                   "--name",
                                   fmt::format("e{}", index),
                                   "--data-dir",
                                   (dir_ / fmt::format("e{}", index)).string(),
                                   "--listen-client-urls",
                                   client,
                                   "--advertise-client-urls",
                                   client,
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer,
                                   "--initial-cluster",
                                   peers,
                                   "--heartbeat-interval",
                                   std::to_string(options_.election.count() / 10),
                                   "--election-timeout",
                                   std::to_string(options_.election.count()),
                                   "--log-level",
                                   "error"};
  if (!options_.tls.empty()) {
    for (const auto& [option, file] : {std::pair{"--cert-file", "server.crt"},
                                       {"--key-file", "server.key"},
                                       {"--trusted-ca-file", "ca.crt"}}) {
      command.emplace_back(option);
      command.push_back((options_.tls / file).string());
    }
    command.emplace_back("--client-cert-auth");
  }
  if (options_.quota > 0) {
    command.emplace_back("--quota-backend-bytes");
    command.push_back(std::to_string(options_.quota));
  }
  const std::string log = fmt::format("e{}.log", index);
  member.process = std::make_unique<e2e::Process>(
      command, e2e::ProcessOptions{.environment = {{"ETCDCTL_API", "3"}}, .error_file = dir_ / log});
}

e2e::Outcome Etcd::try_control(const std::vector<std::string>& arguments) const {
  std::string endpoints;
  for (const std::string& one : urls()) endpoints += (endpoints.empty() ? "" : ",") + one;
  std::vector<std::string> command{etcdctl_program, "--endpoints", endpoints, "--dial-timeout", "2s"};
  if (!options_.tls.empty()) {
    for (const auto& [option, file] :
         {std::pair{"--cert", "client.crt"}, {"--key", "client.key"}, {"--cacert", "ca.crt"}}) {
      command.emplace_back(option);
      command.push_back((options_.tls / file).string());
    }
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  e2e::Process process(command, {.environment = {{"ETCDCTL_API", "3"}}});
  return process.finish(e2e::Deadline(std::chrono::seconds(60)));
}

// Repeat until the members serve: only an answer shows that etcd is ready.
std::string Etcd::control(const std::vector<std::string>& arguments) const {
  const e2e::Deadline deadline(std::chrono::seconds(60));
  while (true) {
    e2e::Outcome outcome = try_control(arguments);
    if (outcome.status == 0) return std::move(outcome.out);
    if (deadline.passed()) throw std::runtime_error("etcdctl: " + outcome.err);
  }
}

}  // namespace resourced::test
