// The tests of a cluster use the real etcd, and are skipped without it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "harness/etcd.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  std::string missing;
  if (access(resourced::test::etcd_program, X_OK) != 0) missing += " etcd-server";
  if (access(resourced::test::etcdctl_program, X_OK) != 0) missing += " etcd-client";
  if (!missing.empty()) {
    std::printf("skipped: needs%s\n", missing.c_str());
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
