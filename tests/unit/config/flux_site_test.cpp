// A complete Flux configuration, as documented in flux-config(5) and related pages, is a valid configuration
// of this daemon: keys for other parts of Flux are ignored and listed.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "config/document.hpp"
#include "config_fixture.hpp"

using namespace resourced;
using namespace resourced::config;
using resourced::test::failure_of;
using resourced::test::load_text;
using resourced::test::TempDir;

namespace {

/// Loads a text and returns its error without the name of the file.
std::string refusal(std::string_view text) {
  const TempDir dir;
  const std::string file = dir.write("c.toml", text);
  const std::string error = failure_of([&] { static_cast<void>(load(file)); }).text;
  return error.starts_with(file + ':') ? error.substr(file.size() + 1) : error;
}

/// The ignored keys: each line is "FILE:LINE: KEY: why".
std::vector<std::string> passed_keys(const Config& config) {
  std::vector<std::string> keys;
  for (const std::string& line : config.passed_over) {
    const std::size_t key = line.find(": ") + 2;
    keys.push_back(line.substr(key, line.find(": ", key) - key));
  }
  return keys;
}

}  // namespace

TEST_CASE("a system instance's configuration in one file") {
  const Config config = load_text(R"(
[access]
allow-guest-user = true
allow-root-owner = true
private-mode = false
roles.admin.groups = ["root"]

[exec]
imp = "/usr/libexec/flux/flux-imp"
service = "sdexec"
[exec.sdexec-properties]
MemoryMax = "90%"
[exec.testexec]
allow-guests = true

[bootstrap]
curve_cert = "/etc/flux/system/curve.cert"
default_port = 8050
default_bind = "tcp://eth0:%p"
default_connect = "tcp://%h:%p"
[[bootstrap.hosts]]
host = "test[0-15]"
[[bootstrap.hosts]]
host = "mgmt"
parent = "test0"

[tbon]
tcp_user_timeout = "2m"
topo = "kary:256"
[systemd]
enable = true
[sdexec]
debug = false
[kvs]
checkpoint-period = "30m"
gc-threshold = 100000
[archive]
dbpath = "/var/lib/flux/job-archive.sqlite"
period = "1m"
[heartbeat]
period = "2s"
[job-list]
max-jobs = 1000
[fake-resources]
hosts = "fake[0-3]"

[ingest]
buffer-size = 64
[ingest.validator]
plugins = ["jobspec", "feasibility"]
[ingest.frobnicator]
plugins = ["defaults", "constraints"]

[policy.jobspec.defaults.system]
duration = "1h"
queue = "batch"
[policy.limits]
duration = "8h"
job-size.max.nnodes = 8

[job-manager]
inactive-age-limit = "7d"
plugins = [{ load = "perilog.so" }, { load = "mf_priority.so", conf = { x = [1, 2] } }]
[job-manager.prolog]
command = ["flux", "perilog-run", "prolog", "-e", "/etc/flux/system/prolog"]
[job-manager.housekeeping]
release-after = "30s"

[sched-simple]
mode = "limited=8"
[sched-fluxion-qmanager]
queue-policy = "easy"
[sched-fluxion-resource]
match-policy = "lonodex"
match-format = "rv1_nosched"

[queues.debug]
requires = ["debug"]
policy.limits.duration = "30m"
[queues.batch]
requires = ["batch"]
[queues.expedite]
parent = "batch"

[resource]
exclude = "test0"
norestrict = true
noverify = false
history = "30d"
[[resource.config]]
hosts = "test[0-15]"
cores = "0-7"
[[resource.config]]
hosts = "test[1-13]"
properties = ["batch"]
[[resource.config]]
hosts = "test[14-15]"
gpus = "0-1"
properties = ["debug"]
)");
  CHECK(passed_keys(config) == std::vector<std::string>{"access.allow-guest-user",
                                                        "access.allow-root-owner",
                                                        "access.private-mode",
                                                        "access.roles",
                                                        "archive",
                                                        "bootstrap",
                                                        "exec",
                                                        "fake-resources",
                                                        "heartbeat",
                                                        "ingest",
                                                        "job-list",
                                                        "job-manager",
                                                        "kvs",
                                                        "policy",
                                                        "queues",
                                                        "sched-fluxion-qmanager",
                                                        "sched-fluxion-resource",
                                                        "sched-simple",
                                                        "sdexec",
                                                        "systemd",
                                                        "tbon"});
  CHECK(config.resource.norestrict);
  CHECK(config.store.history == Seconds(30 * 86400));
  const Inventory inventory = load_inventory(config);
  CHECK(inventory.resources.counts() == rset::ResourceCounts{16, 128, 4});
  CHECK(inventory.exclude.encode() == "0");
  // Flux's own keys of [access] grant no roles.
  CHECK(config.access == Access{});
  // Queues and policy are passed on to the clients of config.get, which need them.
  const nlohmann::json object = to_json(config);
  CHECK(object["queues"]["expedite"]["parent"] == "batch");
  CHECK(object["policy"]["limits"]["job-size"]["max"]["nnodes"] == 8);
  CHECK(object["store"]["history"] == "30d");
}

TEST_CASE("a configuration in a file for each table, as packages install it") {
  const TempDir dir;
  dir.write("access.toml", "[access]\nallow-guest-user = true\nlocal = []\n");
  dir.write("exec.toml", "[exec]\nimp = \"/usr/libexec/flux/flux-imp\"\n");
  dir.write("queues.toml",
            "[queues.batch]\nrequires = [\"batch\"]\n[queues.debug]\npolicy.limits.duration = \"1h\"\n");
  dir.write("resource.toml", "[resource]\npath = \"R\"\nhistory = \"30d\"\n");
  dir.write("system.toml", "\n[policy]\njobspec.defaults.system.queue = \"batch\"\n[sched-simple]\n");
  const std::string R =
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":0,)"
      R"("expiration":0,"nodelist":["a[0-3]"],"properties":{"batch":"1-3"}}})";
  dir.write("R", R);
  const Config config = load(dir.path());
  CHECK(config.passed_over ==
        std::vector<std::string>{
            dir.file("access.toml:2: access.allow-guest-user: ignored: it is for Flux's broker; this "
                     "daemon uses rules and keys of [access]"),
            dir.file("exec.toml:1: exec: ignored: it is for flux-core"),
            dir.file("system.toml:2: policy: ignored: it is for flux-core"),
            dir.file("queues.toml:1: queues: ignored: policy, requires (for other parts of Flux)"),
            dir.file("system.toml:4: sched-simple: ignored: it is for flux-core")});
  CHECK(load_inventory(config).resources.ranks().encode() == "0-3");
  CHECK(config.access.local.empty());
  CHECK(config.store.history == Seconds(30 * 86400));
}

TEST_CASE("tables of every part of Flux are passed over with a line that names the part") {
  const Config config = load_text(R"(allow-sudo = true
log-level = 1
[[modules]]
name = "content-sqlite"
[content-sqlite]
journal_mode = "WAL"
[cron]
sync = "heartbeat"
[rabbit]
kubeconfig = "/etc/rabbit/kubeconfig"
[rabbit.policy.maximums]
xfs = 1024
[cray-slingshot]
vni-pool = "1024-65535"
[accounting.factor-weights]
fairshare = 100000
[sched-fluxion-feasibility]
[sched-mine]
[sign]
max-ttl = 1209600
[sign.munge]
socket-path = "/run/munge/munge.socket.2"
[run.prolog]
path = "/etc/flux/system/prolog"
[ca]
max-cert-ttl = 60
)");
  std::vector<std::string> lines;
  for (const std::string& line : config.passed_over) lines.push_back(line.substr(line.find(": ") + 2));
  CHECK(lines ==
        std::vector<std::string>{
            "accounting: ignored: it is for flux-accounting", "allow-sudo: ignored: it is for flux-security",
            "ca: ignored: it is for flux-security", "content-sqlite: ignored: it is for flux-core",
            "cray-slingshot: ignored: it is for flux-coral2", "cron: ignored: it is for flux-core",
            "log-level: ignored: it is for flux-security", "modules: ignored: it is for flux-core",
            "rabbit: ignored: it is for flux-coral2", "run: ignored: it is for flux-security",
            "sched-fluxion-feasibility: ignored: it is for flux-sched",
            "sched-mine: ignored: it is for a scheduler of Flux", "sign: ignored: it is for flux-security"});
}

TEST_CASE("what a later file makes void is told, and a file that is not read for its name") {
  const TempDir dir;
  dir.write("cluster.toml", "[monitor]\nmode = \"static\"\ncoalesce = 1\n[queues.\"a.b\"]\nhosts = \"a0\"\n");
  dir.write("resourced.toml",
            "[monitor]\nmode = \"agents\"\n[resource]\nsize = 1\n[queues.\"a.b\"]\nhosts = \"a1\"\n");
  dir.write("site.conf", "[monitor]\nmode = \"static\"\n");
  dir.write("site.toml.old", "");
  // Other endings, such as files that settings name, and hidden files of editors are ignored without a line.
  for (const char* other : {"server.key", "agent.env", "R.json", ".site.conf"}) dir.write(other, "");
  const Config config = load(dir.path());
  CHECK(config.monitor.mode == MonitorMode::agents);
  const auto line = [&](const std::string& text) { return dir.file(text); };
  CHECK(config.passed_over ==
        std::vector<std::string>{
            line("site.conf: ignored, as its name does not end in .toml"),
            line("site.toml.old: ignored, as its name does not end in .toml"),
            line("cluster.toml:2: monitor.mode: ignored: " + dir.file("resourced.toml:2") +
                 " sets it, too, and the later file counts"),
            line("cluster.toml:5: queues.\"a.b\".hosts: ignored: " + dir.file("resourced.toml:6") +
                 " sets it, too, and the later file counts")});
  CHECK(config.document->places() == std::vector<std::string>{line("cluster.toml:3: monitor.coalesce"),
                                                              line("resourced.toml:2: monitor.mode"),
                                                              line("resourced.toml:6: queues.\"a.b\".hosts"),
                                                              line("resourced.toml:4: resource.size")});
}

TEST_CASE("nothing is passed over where there is nothing of Flux") {
  CHECK(load_text("[resource]\nexclude = \"0\"\n[queues.batch]\nhosts = \"all\"\n").passed_over.empty());
}

TEST_CASE("a line about what is passed over is one line") {
  const Config config = load_text("[\"sched-\\nx\"]\n[queues.a]\n\"b\\nc\" = 1\n");
  REQUIRE(config.passed_over.size() == 2);
  for (const std::string& line : config.passed_over) CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("any other table is an error that names the known one that it may be") {
  const std::string said = ": unknown table, the nearest known one is ";
  CHECK(refusal("\n[acess]\n") == "2: acess" + said + "access");
  CHECK(refusal("[resources]\n") == "1: resources" + said + "resource");
  CHECK(refusal("[polcy.limits]\n") == "1: polcy" + said + "policy");
  CHECK(refusal("[queue.batch]\n") == "1: queue" + said + "queues");
  CHECK(refusal("[job_manager]\n") == "1: job_manager" + said + "job-manager");
  CHECK(refusal("[sched_simple]\n") == "1: sched_simple" + said + "sched-simple");
  CHECK(refusal("[\"sched-\"]\n").starts_with("1: sched-" + said));
  CHECK(refusal("[exec]\n[heartbeet]\n") == "2: heartbeet" + said + "heartbeat");
  CHECK(refusal("excec = 1\n") == "1: excec" + said + "exec");
  CHECK(refusal("[rabit]\n") == "1: rabit" + said + "rabbit");
  CHECK(refusal("[content_sqlite]\n") == "1: content_sqlite" + said + "content-sqlite");
  // No hint for a table whose name is not close to a known one.
  for (const std::string table : {"metrics", "weather", "nodes"})
    CHECK(refusal("[" + table + "]\n") ==
          "1: " + table + ": unknown table, neither of this daemon nor of another part of Flux");
  // A key of a megabyte is refused like a short one.
  CHECK(refusal("oci" + std::string(1000000, 'x') + " = 1\n").find("unknown table") != std::string::npos);
}

TEST_CASE("unknown keys in tables of this daemon stay errors beside Flux's own") {
  CHECK(refusal("[access]\nallow-guest-user = true\nallow-guests = true\n") ==
        "3: access.allow-guests: unknown key, not one of local, anonymous, rule, key");
  CHECK(refusal("[resource]\nexclud = \"0\"\n").starts_with("2: resource.exclud: unknown key"));
}

TEST_CASE("resource.history is store.history") {
  CHECK(load_text("[resource]\nhistory = \"2h\"\n").store.history == Seconds(7200));
  CHECK(load_text("[resource]\nhistory = \"2h\"\n[store]\nhistory = 7200\n").store.history == Seconds(7200));
  CHECK(refusal("[resource]\nhistory = \"2h\"\n[store]\nhistory = \"3h\"\n")
            .starts_with("2: resource.history: differs from store.history ("));
  CHECK(refusal("[resource]\nhistory = \"2 weeks\"\n").starts_with("2: resource.history: "));
  CHECK(to_json(load_text("[resource]\nhistory = \"2h\"\n"))["store"]["history"] == "2h");
}
