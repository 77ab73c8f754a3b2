// The tests of a cluster use the real etcd. Without it they are skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>

#include <doctest/doctest.h>
#include <unistd.h>

#include "harness/etcd.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  if (access(resourced::test::etcd_program, X_OK) != 0) {
    std::printf("skipped: %s is not there (Debian package etcd-server)\n", resourced::test::etcd_program);
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
