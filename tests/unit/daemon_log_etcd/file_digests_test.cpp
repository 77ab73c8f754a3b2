// Digests of configuration files: a change of meaning changes the digest of its group, and of no other one.
#include "daemon/log/etcd/file_digests.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "temp_dir.hpp"

namespace resourced::daemon::log::etcd {
namespace {

using ::resourced::cluster::differing_files;
using ::resourced::cluster::FileDigests;
using Groups = std::vector<std::string>;

FileDigests digests(std::string_view text) {
  const test::TempDir dir;
  const config::Config config = config::load(dir.write("c.toml", text));
  return file_digests(config,
                      config.resource.has_inventory() ? config::load_inventory(config) : config::Inventory());
}

constexpr std::string_view hosts = "[[resource.config]]\nhosts = \"n[0-3]\"\ncores = \"0-3\"\n";

/// The groups that `more` changes.
Groups changed_by(const std::string& more, const std::string& before = "") {
  return *differing_files(digests(std::string(hosts) + before), digests(std::string(hosts) + more));
}

}  // namespace

TEST_SUITE_BEGIN("digests of files");

TEST_CASE("each group has a digest, also of an empty file") {
  for (const std::string& digest : digests("[resource]\nsize = 4\n[monitor]\nmode = \"agents\"\n"))
    CHECK(digest.size() == 16);
  for (const std::string& digest : digests(hosts)) CHECK(digest.size() == 16);
}

TEST_CASE("other text of the same meaning changes nothing") {
  CHECK(differing_files(digests(hosts), digests("# One by one.\n[[resource.config]]\nhosts = \"n0,n[1-3]\"\n"
                                                "cores = \"0,1,2-3\"\n")) == Groups{});
  CHECK(changed_by("[monitor]\nmode = \"static\"\ngrace = \"10s\"\n") == Groups{});
  CHECK(changed_by("[monitor]\ngrace = \"1m\"\n", "[monitor]\ngrace = 60\n") == Groups{});
  CHECK(changed_by("[resource]\nexclude = \"1\"\n", "[resource]\nexclude = \"n1\"\n") == Groups{});
}

TEST_CASE("what is for one daemon alone changes nothing") {
  CHECK(changed_by("[bus]\nlisten = [\"ipc:///tmp/x\"]\n[log]\nlevel = \"debug\"\n[store]\nhistory = \"1d\"\n"
                   "[http]\nlisten = [\"127.0.0.1:0\"]\n[limits]\nrequests-per-second = 7\n") == Groups{});
}

TEST_CASE("a change is found in its group") {
  CHECK(changed_by("gpus = \"0\"\n") == Groups{"inventory"});
  CHECK(changed_by("properties = [\"fast\"]\n") == Groups{"inventory"});
  CHECK(changed_by("[resource]\nexclude = \"1\"\n") == Groups{"exclude"});
  CHECK(changed_by("[[acquire.partition]]\nname = \"p\"\ntargets = \"0\"\n") == Groups{"partitions"});
  CHECK(changed_by("[queues.batch]\nhosts = \"n0\"\n") == Groups{"partitions"});
  CHECK(changed_by("[monitor]\nmode = \"agents\"\n") == Groups{"monitor"});
  CHECK(changed_by("[resource]\nnoverify = true\n") == Groups{"monitor"});
  CHECK(changed_by("[resource]\nshrink-lost = true\n") == Groups{"monitor"});
  CHECK(changed_by("[access]\nlocal = []\n") == Groups{"access"});
  CHECK(changed_by("[[access.rule]]\nusers = [7]\nroles = [\"admin\"]\n") == Groups{"access"});
}

TEST_CASE("hosts that agents report have no digest in common with configured ones") {
  const std::string agents = "[monitor]\nmode = \"agents\"\n[resource]\nsize = 4\n";
  CHECK(differing_files(digests(agents),
                        digests(std::string("[[resource.config]]\nhosts = \"n[0-3]\"\ncores = \"0\"\n") +
                                agents)) == Groups{"inventory"});
  CHECK(differing_files(digests(agents), digests(agents + "exclude = \"n1\"\n")) == Groups{"exclude"});
}

TEST_SUITE_END();

}  // namespace resourced::daemon::log::etcd
