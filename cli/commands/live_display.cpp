#include "cli/commands/live_display.hpp"

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands/interrupts.hpp"
#include "cli/commands/options.hpp"
#include "cli/screen/abilities.hpp"
#include "cli/screen/screen.hpp"
#include "os/loop.hpp"

namespace resourced::cli::commands {

namespace {

class Display {
 public:
  Display(Context& context, const LiveDisplay& display)
      : context_(context),
        display_(display),
        abilities_(abilities(context)),
        interrupts_(loop_),
        resized_(loop_.context(), SIGWINCH),
        cluster_(context, display.cluster, [this] { show(); }) {}

  void run() {
    client::Connection& connection = context_.connection();
    // An end by an asynchronous signal also destroys the screen.
    (void)loop_.work_until(
        connection.fd(), [&] { connection.process(); }, [this] { return is_over_; });
    interrupts_.check();
  }

 private:
  void show() {
    if (context_.terminal() && abilities_.moves) {
      if (!screen_) begin_screen();
      screen_->draw(display_.render(cluster_, screen::size_of_terminal()));
    } else {
      print();
    }
  }

  void begin_screen() {
    screen_ = std::make_unique<screen::Screen>(context_.out(), abilities_, context_.interactive());
    if (context_.interactive()) {
      keys_ = std::make_unique<os::Watch>(loop_.context(), STDIN_FILENO, [this] {
        constexpr const char* ends = "qQ\x03\x04";
        const std::string keys = screen::read_keys();
        is_over_ = is_over_ || keys.find_first_of(ends) != std::string::npos;
        constexpr char stop = '\x1a';
        if (is_over_ || keys.find(stop) == std::string::npos) return;
        screen_->suspend();
        show();
      });
    }
    wait_for_resize();
    wait_for_period();
  }

  void wait_for_resize() {
    resized_.async_wait([this](const boost::system::error_code& error, int /*number*/) {
      if (error) return;
      show();
      wait_for_resize();
    });
  }

  void wait_for_period() {
    context_.connection().after(display_.period, [this] {
      show();
      wait_for_period();
    });
  }

  void print() {
    const std::string time = views::format_time(context_.now());
    if (const auto& loss = cluster_.loss()) {
      printed_.reset();
      return context_.print_line(fmt::format("--- {} not live: {}", time, loss->what()));
    }
    std::string text;
    for (const views::Line& line : display_.render(cluster_, std::nullopt)) text += line.text + '\n';
    // Many events change nothing on the display.
    if (text == printed_) return;
    context_.print_line(fmt::format("--- {} live", time));
    context_.out() << text << std::flush;
    printed_ = std::move(text);
  }

  Context& context_;
  const LiveDisplay& display_;
  screen::Abilities abilities_;
  os::SignalLoop loop_;
  Interrupts interrupts_;
  boost::asio::signal_set resized_;
  bool is_over_ = false;
  /// The last printed text; unset after the loss of the journal was printed.
  std::optional<std::string> printed_;
  // Members are destroyed in reverse order: the screen last, after the keys are not read any more.
  std::unique_ptr<screen::Screen> screen_;
  std::unique_ptr<os::Watch> keys_;
  LiveCluster cluster_;
};

}  // namespace

void show_live(Context& context, const LiveDisplay& display) { Display(context, display).run(); }

}  // namespace resourced::cli::commands
