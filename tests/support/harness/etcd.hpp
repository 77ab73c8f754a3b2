// Members of a real etcd, each with ports and a directory for this test.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/process.hpp"
#include "temp_dir.hpp"

namespace resourced::test {

inline constexpr const char* etcd_program = "/usr/bin/etcd";
inline constexpr const char* etcdctl_program = "/usr/bin/etcdctl";

struct EtcdOptions {
  std::size_t members = 1;
  /// A directory with ca.crt, server.crt and server.key; with it, clients use TLS and need a certificate of
  /// this CA.
  std::filesystem::path tls = {};
  /// A member starts an election if it has not heard of a leader for this time.
  std::chrono::milliseconds election{1000};
  /// Maximum size of the database in bytes; 0 for that of etcd.
  std::size_t quota = 0;
};

class Etcd {
 public:
  /// Starts the members, and waits until a majority serves.
  explicit Etcd(EtcdOptions options = {});

  /// The URLs for clients.
  [[nodiscard]] std::vector<std::string> urls() const;
  /// The URLs for clients as TOML: `["URL", ...]`.
  [[nodiscard]] std::string toml() const;
  [[nodiscard]] std::uint16_t client_port(std::size_t member) const {
    return members_.at(member).client_port;
  }
  void kill(std::size_t member);
  void start(std::size_t member);
  /// Starts the members that were killed, continues those that were stopped, and waits until a majority
  /// serves.
  void repair();
  [[nodiscard]] e2e::Process& process(std::size_t member) { return *members_.at(member).process; }
  /// Runs etcdctl with these arguments until it succeeds, and returns its output. Throws if it fails for a
  /// minute.
  std::string control(const std::vector<std::string>& arguments) const;
  /// Runs etcdctl once.
  [[nodiscard]] e2e::Outcome try_control(const std::vector<std::string>& arguments) const;

 private:
  struct Member {
    std::uint16_t client_port = 0;
    std::uint16_t peer_port = 0;
    std::unique_ptr<e2e::Process> process;
  };
  [[nodiscard]] std::string url(std::uint16_t port, bool of_client) const;
  void until_serving() const;

  EtcdOptions options_;
  TempDir dir_;
  std::vector<Member> members_;
};

}  // namespace resourced::test
