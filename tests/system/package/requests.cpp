// A program outside of the source tree that uses the parsers of requests (docs/schedulers.md, "Requests") and
// the extensions of an acquisition. It needs no daemon, and ends with 1 after a check that fails.
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include <resourced/client/acquisition.hpp>
#include <resourced/core/constraint/query.hpp>
#include <resourced/core/feasibility/feasibility.hpp>
#include <resourced/core/feasibility/request.hpp>
#include <resourced/core/jobspec/shape.hpp>

using namespace resourced;

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "wrong: " << what << '\n';
  std::exit(1);
}

struct Observer : client::AcquisitionObserver {
  void on_cause(const client::DownCauses& causes) override { down = causes.drained | causes.offline; }
  void on_scheduled(const std::vector<client::ScheduledDrain>& drains) override {
    for (const client::ScheduledDrain& drain : drains)
      if (!drain.until || drain.from < *drain.until) soon |= drain.ranks;
  }
  void on_error(const Error& why) override { errnum = why.errnum(); }
  text::IdSet down, soon;
  int errnum = 0;
};

}  // namespace

int main() {
  const rset::ResourceSet inventory = rset::ResourceSet::parse(R"({"version":1,"execution":{
      "R_lite":[{"rank":"0-2","children":{"core":"0-3"}}],"nodelist":["n[0-2]"],"properties":{"fast":"1-2"}}})");

  feasibility::Request request = feasibility::parse_request(R"({"version":1,"resources":[
      {"type":"slot","count":2,"label":"task","with":[{"type":"core","count":4}],"own":1}],
      "attributes":{"system":{"duration":90,"constraints":{"properties":["fast"]}}}})");
  check(request.duration == Seconds(90), "duration");
  check(request.constraint.match(inventory) == text::IdSet{1, 2}, "match");
  check(request.resources.front().count.min() == 2, "count");
  check(inventory == rset::ResourceSet::parse(inventory.encode()), "comparison of sets");
  check(inventory.nodelist() == text::Hostlist::parse("n[0-2]"), "comparison of hosts");
  check(request.resources.front().extra != nullptr, "extra");
  request.resources.front().extra = nullptr;
  check(jobspec::print_shape(request.resources, {"task"}) == "slot=2/core=4", "print_shape");
  check(feasibility::check_feasibility(request.resources, request.constraint, inventory).feasible(),
        "feasible");

  const jobspec::ResourceGraph three = jobspec::parse_shape("slot=3/node");
  check(three == jobspec::parse_shape(jobspec::print_shape(three)), "comparison of requests");
  const feasibility::Feasibility answer =
      feasibility::check_feasibility(three, request.constraint, inventory);
  check(answer.verdict == feasibility::Feasibility::Verdict::infeasible && !answer.reason.empty(), "verdict");
  check(
      feasibility::check_feasibility(three, constraint::parse_query("fast or host:n0"), inventory).feasible(),
      "parse_query");
  try {
    constraint::Budget none(0);
    (void)feasibility::check_feasibility(three, {}, inventory, none);
    check(false, "a budget that is spent");
  } catch (const Error& error) {
    check(error.errnum() == ETIMEDOUT, "errno of a budget that is spent");
  }
  try {
    (void)jobspec::parse_shape("slot=");
    check(false, "a bad shape");
  } catch (const jobspec::ShapeError& error) {
    check(error.column() == 6, "column");
  }

  client::Connection connection("ipc:///nonexistent/bus");
  Observer observer;
  client::AcquisitionOptions options;
  options.scheduled = options.cause = true;
  const client::Acquisition acquisition(connection, observer, options);
  check(acquisition.scheduled().empty(), "scheduled");
  while (observer.errnum == 0) connection.wait(client::Milliseconds(-1));
  check(observer.errnum == ENOENT, "errno of a daemon that is not there");
}
