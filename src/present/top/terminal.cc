#include "present/top/terminal.h"

#include <fmt/format.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string>

#define NCURSES_NOMACROS
#include <curses.h>

#include "base/nanoseconds.h"
#include "base/utf8.h"
#include "present/report/utf8.h"

namespace lockstep::top {
namespace {

volatile std::sig_atomic_t ending = 0;  // Set by the handler.

// For a signal after which nothing can be called but what is safe then: how the terminal was, and what takes it back.
termios saved_termios;
std::array<char, 256> leave_text;
size_t leave_bytes = 0;

void OnEnd(int signal_number) { ending = signal_number; }

void OnCrash(int signal_number) {
  const ssize_t ignored = ::write(STDOUT_FILENO, leave_text.data(), leave_bytes);
  static_cast<void>(ignored);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_termios);
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

/// A terminal's command by its name in terminfo; empty where it has none.
std::string_view Command(const char* name) {
  const char* text = ::tigetstr(name);
  // It answers with -1 for a name that is none of its.
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return {};
  return text;
}

void KeepLeaveText() {
  leave_bytes = 0;
  for (const char* name : {"sgr0", "cnorm", "rmcup"}) {
    const std::string_view command = Command(name);
    if (leave_bytes + command.size() > leave_text.size()) return;
    std::memcpy(leave_text.data() + leave_bytes, command.data(), command.size());
    leave_bytes += command.size();
  }
}

constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array<int, 5> kCrashing = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

struct Look {
  attr_t attributes = A_NORMAL;
  short pair = 0;
};

/// Our own sequences (report::Style): "1;31" and its kin.
Look LookOf(std::string_view codes, bool colour) {
  Look look;
  for (size_t at = 0; at <= codes.size();) {
    const size_t end = std::min(codes.find(';', at), codes.size());
    const std::string_view code = codes.substr(at, end - at);
    if (code == "1") look.attributes |= A_BOLD;
    if (code == "2") look.attributes |= A_DIM;
    if (colour && code.size() == 2 && code[0] == '3' && code[1] >= '0' && code[1] <= '7') {
      look.pair = static_cast<short>(code[1] - '0' + 1);
    }
    at = end + 1;
  }
  return look;
}

}  // namespace

struct Terminal::State {
  Options options;
  SCREEN* screen = nullptr;
  bool colour = false;
  bool signals_set = false;
  std::array<struct sigaction, kEnding.size()> ending_before = {};
  std::array<struct sigaction, kCrashing.size()> crashing_before = {};

  void SetSignals() {
    ending = 0;
    struct sigaction action = {};
    ::sigemptyset(&action.sa_mask);
    action.sa_handler = OnEnd;
    for (size_t i = 0; i < kEnding.size(); ++i) ::sigaction(kEnding[i], &action, &ending_before[i]);
    action.sa_handler = OnCrash;
    for (size_t i = 0; i < kCrashing.size(); ++i) ::sigaction(kCrashing[i], &action, &crashing_before[i]);
    signals_set = true;
  }
  void RestoreSignals() {
    if (!signals_set) return;
    for (size_t i = 0; i < kEnding.size(); ++i) ::sigaction(kEnding[i], &ending_before[i], nullptr);
    for (size_t i = 0; i < kCrashing.size(); ++i) ::sigaction(kCrashing[i], &crashing_before[i], nullptr);
  }

  void DrawLine(int row, const ScreenLine& line, int width) const {
    ::wmove(stdscr, row, 0);
    const attr_t base = line.is_selected ? A_REVERSE : A_NORMAL;
    ::wattr_set(stdscr, base, 0, nullptr);
    const std::string_view text = line.text;
    int used = 0;
    for (size_t at = 0; at < text.size();) {
      if (text.substr(at).starts_with("\x1b[")) {
        const size_t end = text.find('m', at);
        if (end == std::string_view::npos) break;
        const Look look = LookOf(text.substr(at + 2, end - at - 2), colour);
        ::wattr_set(stdscr, base | look.attributes, look.pair, nullptr);
        at = end + 1;
        continue;
      }
      const Utf8Character c = ReadUtf8(text, at);
      const std::string_view bytes = text.substr(at, c.length);
      at += c.length;
      // Nothing else moves the cursor: what comes from outside was made printable, and this is the last door.
      const bool is_shown =
          c.valid && c.code_point >= 0x20 && c.code_point != 0x7F && (c.code_point < 0x80 || options.unicode);
      const int columns = is_shown ? report::DisplayWidth(bytes) : 1;
      if (used + columns > width) break;
      used += columns;
      is_shown ? ::waddnstr(stdscr, bytes.data(), static_cast<int>(bytes.size())) : ::waddnstr(stdscr, "?", 1);
    }
    ::wattr_set(stdscr, base, 0, nullptr);
    if (line.is_selected) {
      for (; used < width; ++used) ::waddnstr(stdscr, " ", 1);
    } else if (used < width) {
      ::wclrtoeol(stdscr);
    }
    ::wattr_set(stdscr, A_NORMAL, 0, nullptr);
  }
};

Terminal::Terminal(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Terminal>> Terminal::Open(const Options& options) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return Error{ErrorCode::kFailedPrecondition,
                 "the terminal view needs a terminal for input and output; --once prints a table, --json lines"};
  }
  auto state = std::make_unique<State>();
  state->options = options;
  ::tcgetattr(STDIN_FILENO, &saved_termios);
  state->screen = ::newterm(nullptr, stdout, stdin);
  const bool can_draw = state->screen != nullptr && !Command("cup").empty();
  if (!can_draw) {
    if (state->screen != nullptr) {
      ::endwin();
      ::delscreen(state->screen);
    }
    const char* name = std::getenv("TERM");
    return Error{ErrorCode::kFailedPrecondition,
                 fmt::format("nothing can be drawn on a terminal '{}' (TERM); --once prints a table",
                             name == nullptr ? "" : name)};
  }
  KeepLeaveText();
  ::cbreak();
  ::noecho();
  ::nonl();
  ::intrflush(stdscr, false);
  ::keypad(stdscr, true);
  ::set_escdelay(25);
  ::curs_set(0);
  if (options.colour && ::has_colors()) {
    ::start_color();
    const bool has_default = ::use_default_colors() == OK;
    for (short colour = 0; colour < 8; ++colour) {
      ::init_pair(static_cast<short>(colour + 1), colour, has_default ? -1 : 0);
    }
    state->colour = true;
  }
  // After newterm, which sets handlers of its own that end the process silently.
  state->SetSignals();
  return std::unique_ptr<Terminal>(new Terminal(std::move(state)));
}

Terminal::~Terminal() {
  ::endwin();
  ::delscreen(state_->screen);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_termios);
  state_->RestoreSignals();
}

int Terminal::width() const { return std::max(::getmaxx(stdscr), 1); }
int Terminal::height() const { return std::max(::getmaxy(stdscr), 1); }
int Terminal::ending_signal() { return ending; }

void Terminal::Draw(const std::vector<ScreenLine>& lines) {
  const int columns = width();
  const int rows = height();
  for (int row = 0; row < rows; ++row) {
    static const ScreenLine kEmpty;
    const auto idx = static_cast<size_t>(row);
    state_->DrawLine(row, idx < lines.size() ? lines[idx] : kEmpty, columns);
  }
  ::wrefresh(stdscr);
}

std::optional<KeyPress> Terminal::Wait(int64_t wait_ns, bool* resized) {
  ::wtimeout(stdscr, static_cast<int>(std::clamp<int64_t>(wait_ns / kMillisecondNs, 0, 1'000)));
  wint_t code = 0;
  const int kind = ::wget_wch(stdscr, &code);
  if (kind == ERR) return std::nullopt;
  if (kind == KEY_CODE_YES) {
    switch (code) {
      case KEY_RESIZE: *resized = true; return std::nullopt;
      case KEY_UP: return KeyPress{Key::kUp};
      case KEY_DOWN: return KeyPress{Key::kDown};
      case KEY_PPAGE: return KeyPress{Key::kPageUp};
      case KEY_NPAGE: return KeyPress{Key::kPageDown};
      case KEY_HOME: return KeyPress{Key::kHome};
      case KEY_END: return KeyPress{Key::kEnd};
      case KEY_ENTER: return KeyPress{Key::kEnter};
      case KEY_BACKSPACE: return KeyPress{Key::kBackspace};
      default: return std::nullopt;
    }
  }
  if (code == '\r' || code == '\n') return KeyPress{Key::kEnter};
  if (code == 27) return KeyPress{Key::kEscape};
  if (code == 127 || code == 8) return KeyPress{Key::kBackspace};
  if (code == 12) {  // Ctrl-L
    ::clearok(stdscr, true);
    *resized = true;
    return std::nullopt;
  }
  if (code < 0x20 && code != '\t') return std::nullopt;
  std::array<char, 8> bytes = {};
  std::mbstate_t shift = {};
  const size_t length = ::wcrtomb(bytes.data(), static_cast<wchar_t>(code), &shift);
  if (length == static_cast<size_t>(-1) || length == 0) return std::nullopt;
  return KeyPress{Key::kText, std::string(bytes.data(), length)};
}

}  // namespace lockstep::top
