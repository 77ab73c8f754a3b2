// resourcectl acquire: holds resources as a scheduler does (RFC 28) and prints each response. Also evict,
// which ends the hold of a scheduler, and acquire-mute, which ends the responses to all of them.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands/change.hpp"
#include "cli/commands/context.hpp"
#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/usage/command.hpp"
#include "cli/views/views.hpp"
#include "client/acquisition.hpp"
#include "client/connection.hpp"
#include "core/error.hpp"
#include "core/json/reader.hpp"
#include "os/loop.hpp"
#include "os/user_name.hpp"
#include "proto/message.hpp"
#include "proto/topics/peers.hpp"

namespace resourced::cli::commands {

namespace {

struct AcquireOptions {
  client::AcquisitionOptions acquisition;
  std::uint64_t count = 0;
  std::string until;
};

/// Whether a response has a key. The connection has checked that `object` is JSON.
bool has_key(std::string_view object, const std::string& key) {
  const auto read = read_json(object, proto::max_json_depth, json_text::JsonManners::lenient);
  return std::get<nlohmann::json>(read).contains(key);
}

class Printer : public client::AcquisitionObserver {
 public:
  Printer(const Context& context, const AcquireOptions& options) : context_(context), options_(options) {}

  void on_response(std::string_view json) override {
    // Skip responses that arrive in the same batch after the one that ends the command.
    if (done_) return;
    // A valid JSON response has line ends and tabs only between values, so blanks can replace them.
    std::string line(json);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    context_.print_line(line);
    ++responses_;
    done_ = (options_.count != 0 && responses_ == options_.count) ||
            (!options_.until.empty() && has_key(json, options_.until));
  }
  void on_error(const Error& why) override { error_ = why; }

  [[nodiscard]] bool done() const noexcept { return done_ || error_.has_value(); }
  void check() const {
    if (error_ && !done_) throw Error(*error_);
  }

 private:
  const Context& context_;
  const AcquireOptions& options_;
  std::uint64_t responses_ = 0;
  bool done_ = false;
  std::optional<Error> error_;
};

void acquire(Context& context, const AcquireOptions& options) {
  using Absent = Context::Absent;
  auto& connection =
      context.connection(options.acquisition.wait_for_daemon ? Absent::is_waited_for : Absent::fails);
  os::SignalLoop loop;
  const Interrupts interrupts(loop);
  Printer printer(context, options);
  client::Acquisition acquisition(connection, printer, options.acquisition);
  loop.work_until(
      connection.fd(), [&] { connection.process(); }, [&] { return printer.done(); });
  acquisition.close();
  connection.close();
  interrupts.check();
  printer.check();
}

struct EvictOptions {
  std::string partition;
  std::string reason;
  ReportOptions report;
};

void evict(Context& context, const EvictOptions& options) {
  const auto peers = proto::topics::parse_peers(context.call("resource.peers"));
  const auto holder =
      std::ranges::find(peers.holders, options.partition, &proto::topics::Peers::Holder::partition);
  const std::string what =
      options.partition.empty() ? "the resources" : fmt::format("partition {}", options.partition);
  if (holder == peers.holders.end()) {
    std::string others;
    for (const auto& other : peers.holders)
      others += fmt::format("{}{}", others.empty() ? "" : ", ",
                            other.partition.empty() ? "the rest" : other.partition);
    throw Error(ENOENT, fmt::format("no scheduler has acquired {}{}{}", what,
                                    others.empty() ? "" : "; acquired are: ", others));
  }
  context.call("resource.evict",
               proto::topics::encode_evict({options.partition, holder->since, options.reason}));
  const std::string who =
      holder->by ? views::format_actor(*holder->by, os::user_name) : "a client without a name";
  print_change(
      context, options.report,
      fmt::format("evicted the scheduler of {}: {}, since {}", what, who, views::format_time(holder->since)),
      {{"change", "evict"}, {"partition", options.partition}, {"since", to_number(holder->since)}});
}

void mute(Context& context, const ReportOptions& report) {
  context.call("resource.acquire-mute");
  print_change(context, report, "muted the present schedulers", {{"change", "acquire-mute"}});
}

}  // namespace

void register_acquire(usage::Command& app, Context& context) {
  auto options = std::make_shared<AcquireOptions>();
  auto* command = app.add_subcommand(
      "acquire", "Hold the resources as a scheduler does, and print each response as one JSON object a line");
  command
      ->add_option("--partition", options->acquisition.partition,
                   "The partition to hold; default: the targets in no partition")
      ->type_name("NAME");
  require_count(*command->add_option("--count", options->count, "End after this many responses"));
  command->add_option("--until", options->until, "End after the first response that has this key")
      ->type_name("KEY")
      ->one_of({"resources", "up", "down", "shrink", "property-add", "property-remove", "expiration"});
  command->add_flag("--wait", options->acquisition.wait_for_daemon,
                    "Wait until the daemon runs, if it does not run yet");
  options->acquisition.follow_restart = false;
  // A daemon that discovers its inventory may take any time, and the user can see that it waits.
  options->acquisition.answer_timeout = client::Milliseconds(0);
  // A user may stop this command with Ctrl-Z, or not read its output: it holds until it ends.
  options->acquisition.lease.reset();
  command->add_flag("--follow-restart", options->acquisition.follow_restart,
                    "Acquire again also after a clean shutdown of the daemon");
  command->callback([options, &context] { acquire(context, *options); });

  auto evicting = std::make_shared<EvictOptions>();
  auto* evicts =
      app.add_subcommand("evict", "End the hold of a scheduler that does not give its resources back");
  evicts
      ->add_option("--partition", evicting->partition,
                   "The partition that it has acquired; default: the targets in no partition")
      ->type_name("NAME");
  evicts->add_option("--reason", evicting->reason, "What the scheduler is told")->type_name("TEXT");
  add_report_options(*evicts, evicting->report);
  evicts->callback([evicting, &context] { evict(context, *evicting); });

  auto report = std::make_shared<ReportOptions>();
  auto* mutes = app.add_subcommand(
      "acquire-mute", "Tell the present schedulers of no further changes, before a system is shut down");
  add_report_options(*mutes, *report);
  mutes->callback([report, &context] { mute(context, *report); });
}

}  // namespace resourced::cli::commands
