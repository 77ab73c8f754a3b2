// Certificates, and users of etcd.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "harness/etcd.hpp"
#include "harness/process.hpp"
#include "temp_dir.hpp"

namespace resourced::test {

inline void openssl(const TempDir& dir, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/openssl");
  e2e::Process process(arguments, {.error_file = dir / "openssl.log"});
  REQUIRE(process.finish().status == 0);
}

/// Makes NAME.key and NAME.crt, which ca.key has signed.
inline void make_certificate(const TempDir& dir, const std::string& name) {
  const auto path = [&](const std::string& file) { return (dir / file).string(); };
  dir.write("extensions", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
  openssl(dir, {"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                "/CN=" + name, "-keyout", path(name + ".key"), "-out", path(name + ".csr")});
  openssl(dir,
          {"x509", "-req", "-in", path(name + ".csr"), "-CA", path("ca.crt"), "-CAkey", path("ca.key"),
           "-CAcreateserial", "-days", "2", "-extfile", path("extensions"), "-out", path(name + ".crt")});
  REQUIRE(chmod(path(name + ".key").c_str(), 0600) == 0);
}

/// Makes ca.crt, and certificates signed by it for the server and the client.
inline void make_certificates(const TempDir& dir) {
  const auto path = [&](const std::string& name) { return (dir / name).string(); };
  openssl(dir, {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                "2", "-subj", "/CN=test ca", "-keyout", path("ca.key"), "-out", path("ca.crt")});
  for (const std::string name : {"server", "client"}) make_certificate(dir, name);
}

/// Adds the users root and `member`, of which that may read and write below /p/ and /resourced/.
inline void add_user(const Etcd& etcd, const std::string& password) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"user", "add", "root:secret"},
           {"user", "add", "member:" + password},
           {"role", "add", "member"},
           {"role", "grant-permission", "member", "readwrite", "--prefix=true", "/p/"},
           {"role", "grant-permission", "member", "readwrite", "--prefix=true", "/resourced/"},
           {"user", "grant-role", "root", "root"},
           {"user", "grant-role", "member", "member"}})
    etcd.control(command);
}

/// Changes the password of `member`, once authentication is enabled.
inline void change_password(const Etcd& etcd, const std::string& password) {
  e2e::Process change({"/bin/sh", "-c",
                       fmt::format("echo {} | ETCDCTL_API=3 etcdctl --endpoints {} --user root:secret user "
                                   "passwd member --interactive=false",
                                   password, etcd.urls().front())});
  REQUIRE(change.finish().status == 0);
}

}  // namespace resourced::test
