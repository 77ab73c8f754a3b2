// Members of a real etcd, each with ports and a directory of the test's own.
#pragma once

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

struct EtcdOptions {
  std::size_t members = 1;
  /// A directory with ca.crt, server.crt and server.key: clients use TLS, and need a certificate of this CA.
  std::filesystem::path tls = {};
};

class Etcd {
 public:
  /// Waits until a majority serves.
  explicit Etcd(EtcdOptions options = {});

  /// The URLs for clients.
  [[nodiscard]] std::vector<std::string> urls() const;
  /// `["URL", ...]`, as TOML has it.
  [[nodiscard]] std::string toml() const;
  [[nodiscard]] std::uint16_t client_port(std::size_t member) const {
    return members_.at(member).client_port;
  }
  void kill(std::size_t member);
  void start(std::size_t member);
  [[nodiscard]] e2e::Process& process(std::size_t member) { return *members_.at(member).process; }
  /// Runs etcdctl with these arguments, and returns its output. Throws if it fails.
  std::string control(const std::vector<std::string>& arguments) const;

 private:
  struct Member {
    std::uint16_t client_port = 0;
    std::uint16_t peer_port = 0;
    std::unique_ptr<e2e::Process> process;
  };
  [[nodiscard]] std::string url(std::uint16_t port, bool of_client) const;

  EtcdOptions options_;
  TempDir dir_;
  std::vector<Member> members_;
};

}  // namespace resourced::test
