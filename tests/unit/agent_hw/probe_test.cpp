// Hardware of many kinds of nodes. The topologies of tests/vectors/hwloc, whose names describe them, were
// made with `lstopo -i SYNTHETIC --of xml`; devices and allowed sets were added by hand.
#include "agent/hw/probe.hpp"

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sched.h>

#include "core/error.hpp"
#include "environment.hpp"
#include "temp_dir.hpp"
#include "vector_files.hpp"

using namespace resourced;
using agent::hw::Hardware;
using agent::hw::probe;
using agent::hw::ProbeOptions;
using test::Variable;

namespace resourced::agent::hw {

// Lets doctest print the hardware in its messages.
std::ostream& operator<<(std::ostream& out, const Hardware& hardware) {
  return out << hardware.cores << " cores, " << hardware.gpus << " gpus";
}

}  // namespace resourced::agent::hw

namespace {

std::string topology_file(const std::string& name) { return RESOURCED_VECTORS "/hwloc/" + name + ".xml"; }

ProbeOptions from_file(const std::string& path) {
  ProbeOptions options;
  options.xml = path;
  return options;
}

ProbeOptions from_text(const std::string& text) {
  ProbeOptions options;
  options.synthetic = text;
  return options;
}

std::string failure(const std::function<void()>& f, int* errnum = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (errnum != nullptr) *errnum = error.errnum();
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_SUITE("probe") {
  TEST_CASE_FIXTURE(test::NoHwlocVariables, "cores and GPUs of many kinds of nodes") {
    struct Case {
      const char* file;
      Hardware hardware;
    };
    const std::vector<Case> cases = {
        // The graphics device of the management controller is not a GPU.
        {"two_sockets", {8, 0}},
        // Two hardware threads make one core.
        {"smt", {8, 0}},
        {"big_numa", {128, 0}},
        // The cpuset has two whole cores, one thread of two others, and nothing of the remaining four.
        {"restricted_cpuset", {4, 0}},
        // CUDA, NVML and OpenCL report each GPU.
        {"four_gpus", {16, 4}},
        // OpenCL reports both GPUs without their PCI addresses, and the processor.
        {"two_gpus_and_opencl_without_place", {6, 2}},
        {"one_gpu_with_tiles", {4, 1}},
    };
    CHECK(cases.size() == test::list_vectors("hwloc", ".xml").size());
    auto everything = from_file(topology_file("restricted_cpuset"));
    everything.norestrict = true;
    CHECK(probe(everything) == Hardware{8, 0});
    for (const auto& [file, hardware] : cases) {
      CAPTURE(file);
      CHECK(probe(from_file(topology_file(file))) == hardware);
      const Variable xml("HWLOC_XMLFILE", topology_file(file));
      CHECK(probe({}) == hardware);
    }
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "synthetic topologies") {
    const std::vector<std::pair<const char*, std::uint32_t>> cases = {
        {"pu:1", 1},
        {"core:3 pu:1", 3},
        {"package:2 core:8 pu:2", 16},
        {"package:2 [numa] core:4 pu:1", 8},
        // A topology without cores: its hardware threads count.
        {"package:2 pu:4", 8},
    };
    for (const auto& [text, cores] : cases) {
      CAPTURE(text);
      CHECK(probe(from_text(text)) == Hardware{cores, 0});
      const Variable synthetic("HWLOC_SYNTHETIC", text);
      CHECK(probe({}) == Hardware{cores, 0});
    }
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "the XML of a topology is what hwloc reads") {
    const test::TempDir dir;
    ProbeOptions options;
    options.synthetic = "package:2 core:3 pu:2";
    const agent::hw::Topology topology = agent::hw::probe_topology(options);
    CHECK(topology.hardware == Hardware{6, 0});
    ProbeOptions again;
    again.xml = dir.write("topology.xml", topology.xml);
    CHECK(probe(again) == topology.hardware);
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "an option counts for more than the environment") {
    SUBCASE("a text") {
      const Variable xml("HWLOC_XMLFILE", topology_file("big_numa"));
      CHECK(probe(from_text("core:3 pu:1")) == Hardware{3, 0});
    }
    SUBCASE("a file") {
      const Variable synthetic("HWLOC_SYNTHETIC", "core:3 pu:1");
      CHECK(probe(from_file(topology_file("four_gpus"))) == Hardware{16, 4});
    }
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "the machine itself has a core, and no more than threads") {
    const auto hardware = probe({});
    CHECK(hardware.cores >= 1);
    CHECK(hardware.cores <= std::thread::hardware_concurrency());
    // An empty environment variable counts as unset.
    const Variable xml("HWLOC_XMLFILE", "");
    const Variable synthetic("HWLOC_SYNTHETIC", "");
    CHECK(probe({}) == hardware);
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "only cores that this process may use count") {
    cpu_set_t before;
    REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
    struct Restore {
      cpu_set_t& set;
      ~Restore() { sched_setaffinity(0, sizeof(set), &set); }
    } restore{before};
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(probe({}) == Hardware{1, 0});
    // In a topology of another machine all cores count, unless HWLOC_THISSYSTEM declares it to be this one.
    CHECK(probe(from_text("core:256 pu:1")).cores == 256);
    auto file = from_file(topology_file("big_numa"));
    CHECK(probe(file).cores == 128);
    file.is_this_system = true;
    CHECK(probe(file).cores == 1);
    const Variable this_system("HWLOC_THISSYSTEM", "1");
    CHECK(probe(from_text("core:256 pu:1")).cores == 1);
  }

  TEST_CASE_FIXTURE(test::NoHwlocVariables, "a topology that cannot be used is an error, not the machine") {
    const test::TempDir directory;
    const auto smt = test::read_vector("hwloc/smt.xml");
    const std::vector<std::string> files = {
        directory.write("empty.xml", ""),
        directory.write("junk.xml", "no topology"),
        directory.write("open.xml", "<topology"),
        directory.write("other.xml", "<?xml version=\"1.0\"?>\n<other/>\n"),
        directory.write("half.xml", smt.substr(0, smt.size() / 2)),
        directory.path(),
    };
    for (const auto& file : files) {
      CAPTURE(file);
      const auto expected = "the topology file " + file + ": not a topology that hwloc understands";
      int errnum = 0;
      CHECK(failure([&] { static_cast<void>(probe(from_file(file))); }, &errnum) == expected);
      CHECK(errnum == EINVAL);
      const Variable xml("HWLOC_XMLFILE", file);
      CHECK(failure([&] { static_cast<void>(probe({})); }) == expected);
    }

    const auto missing = directory.file("missing.xml");
    int errnum = 0;
    CHECK(failure([&] { static_cast<void>(probe(from_file(missing))); }, &errnum) ==
          "the topology file " + missing + ": No such file or directory");
    CHECK(errnum == ENOENT);

    for (const auto* text : {"pakage:2 core:4 pu:1", "core:4", "core:0 pu:1", "core:x pu:1"}) {
      CAPTURE(text);
      const auto expected =
          std::string("the synthetic topology \"") + text + "\": not a topology that hwloc understands";
      CHECK(failure([&] { static_cast<void>(probe(from_text(text))); }) == expected);
      const Variable synthetic("HWLOC_SYNTHETIC", text);
      CHECK(failure([&] { static_cast<void>(probe({})); }) == expected);
    }
  }
}
