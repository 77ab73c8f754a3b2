#include "cli/screen/screen.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <ostream>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/views/text_width.hpp"
#include "core/error.hpp"

namespace resourced::cli::screen {

namespace {

// Control sequences of ECMA-48 and of xterm, which all terminals have that move a cursor.
constexpr std::string_view enter_screen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
constexpr std::string_view leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// Signals that end the process without its destructors. SIGINT and SIGTERM are handled by the loop.
constexpr std::array ending{SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
                            SIGSYS, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};

// State for the signal handler, which has no arguments for it.
struct Saved {
  volatile std::sig_atomic_t is_entered = 0;
  bool has_mode = false;
  termios mode{};
};
Saved saved;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Restores the terminal. Safe in a signal handler.
void restore() {
  if (saved.is_entered == 0) return;
  saved.is_entered = 0;
  if (saved.has_mode) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved.mode);
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, leave.data(), leave.size());
}

// Restores the terminal and raises the signal again. The handler was reset when it was called, so the signal
// now ends the process.
void on_ending_signal(int number) {
  const int before = errno;
  restore();
  ::raise(number);
  errno = before;
}

std::string_view code_of(views::Style style, bool colours) {
  using views::Style;
  switch (style) {
    case Style::title:
      return "\x1b[7m";
    case Style::alarm:
      return colours ? "\x1b[1;37;41m" : "\x1b[1;7m";
    case Style::heading:
      return colours ? "\x1b[36m" : "";
    case Style::good:
      return colours ? "\x1b[32m" : "";
    case Style::warning:
      return colours ? "\x1b[33m" : "";
    case Style::bad:
      return colours ? "\x1b[31m" : "";
    case Style::plain:
      return "";
  }
  return "";
}

}  // namespace

views::Size size_of_terminal() {
  winsize size{};
  views::Size found;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
    found = {size.ws_row, size.ws_col};
  return found;
}

Screen::Screen(std::ostream& out, const Abilities& abilities, bool reads_keys)
    : out_(out), abilities_(abilities), reads_keys_(reads_keys) {
  enter();
}

void Screen::enter() {
  saved.has_mode = reads_keys_ && ::tcgetattr(STDIN_FILENO, &saved.mode) == 0;
  saved.is_entered = 1;
  for (const int number : ending) {
    struct sigaction action {};
    action.sa_handler = on_ending_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
    ::sigaction(number, &action, nullptr);
  }
  if (saved.has_mode) {
    termios keys = saved.mode;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    // Turn Ctrl-S off: it would stop the output, and the process with it.
    keys.c_iflag &= ~static_cast<tcflag_t>(IXON);
    // Ctrl-C remains a signal. Ctrl-Z is read as a key, so that the terminal is restored before the process
    // stops.
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;
    keys.c_cc[VQUIT] = _POSIX_VDISABLE;
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  out_ << enter_screen << std::flush;
}

void Screen::suspend() {
  restore();
  // Stop the whole job, because a pipeline stops as one.
  ::kill(0, SIGTSTP);
  enter();
}

Screen::~Screen() {
  out_.clear();
  out_ << std::flush;
  restore();
  for (const int number : ending) ::signal(number, SIG_DFL);
}

void Screen::draw(const std::vector<views::Line>& lines) {
  auto shown = lines;
  if (!abilities_.unicode) {
    for (auto& line : shown) line.text = views::to_ascii_in_place(line.text);
  }
  out_ << encode_frame(shown, size_of_terminal().rows, abilities_.colours) << std::flush;
  if (!out_) throw Error(EIO, "cannot write to the terminal");
}

std::string read_keys() {
  std::string keys;
  pollfd wait{STDIN_FILENO, POLLIN, 0};
  while (::poll(&wait, 1, 0) == 1) {
    std::array<char, 64> buffer{};
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    constexpr char end_of_file = '\x04';
    if (count <= 0) return keys + end_of_file;
    keys.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return keys;
}

// Encodes a frame. Each line is cleared before its text: after a text as wide as the screen the cursor is on
// its last character.
std::string encode_frame(const std::vector<views::Line>& lines, std::size_t rows, bool colours) {
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < rows; ++i) {
    frame += i > 0 ? "\r\n\x1b[K" : "\x1b[K";
    if (i >= lines.size()) continue;
    const std::string_view code = code_of(lines[i].style, colours);
    frame += code;
    frame += lines[i].text;
    if (!code.empty()) frame += "\x1b[0m";
  }
  return frame;
}

}  // namespace resourced::cli::screen
