#include "programs/cli/query/line_reader.h"

#include <histedit.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace lockstep::cli {
namespace {

constexpr int kHistoryLength = 1000;

class PlainReader : public LineReader {
 public:
  std::optional<std::string> Read(const std::string&) override {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
};

class EditingReader : public LineReader {
 public:
  explicit EditingReader(std::string history_file) : history_file_(std::move(history_file)) {
    history_ = history_init();
    edit_ = el_init("lockstep", stdin, stdout, stderr);
    HistEvent event;
    if (history_ != nullptr) {
      history(history_, &event, H_SETSIZE, kHistoryLength);
      history(history_, &event, H_SETUNIQUE, 1);
      if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    }
    if (edit_ == nullptr) return;
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, Prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_SIGNAL, 0);
    if (history_ != nullptr) el_set(edit_, EL_HIST, history, history_);
  }
  ~EditingReader() override {
    HistEvent event;
    if (history_ != nullptr && !history_file_.empty()) {
      const mode_t mask = ::umask(0077);  // what was asked is nobody else's
      history(history_, &event, H_SAVE, history_file_.c_str());
      ::umask(mask);
    }
    if (edit_ != nullptr) el_end(edit_);
    if (history_ != nullptr) history_end(history_);
  }
  EditingReader(const EditingReader&) = delete;
  EditingReader& operator=(const EditingReader&) = delete;

  bool usable() const { return edit_ != nullptr; }

  std::optional<std::string> Read(const std::string& prompt) override {
    prompt_ = prompt;
    interrupted_ = false;
    int count = 0;
    errno = 0;
    const char* line = el_gets(edit_, &count);
    if (line == nullptr) {
      if (count < 0 && errno == EINTR) {
        interrupted_ = true;
        std::cout << std::endl;
        return std::string();
      }
      return std::nullopt;
    }
    std::string text(line, static_cast<size_t>(count));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
  }

  bool interrupted() const override { return interrupted_; }

  void Remember(const std::string& text) override {
    HistEvent event;
    if (history_ != nullptr) history(history_, &event, H_ENTER, text.c_str());
  }

 private:
  static char* Prompt(EditLine* edit) {
    EditingReader* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  const std::string history_file_;
  std::string prompt_;
  bool interrupted_ = false;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineReader> MakeLineReader(bool terminal, const std::string& history_file) {
  if (terminal) {
    auto reader = std::make_unique<EditingReader>(history_file);
    if (reader->usable()) return reader;
  }
  return std::make_unique<PlainReader>();
}

std::string HistoryFile(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && state[0] == '/') {
    folder = state;
  } else if (home != nullptr && home[0] == '/') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "lockstep";
  std::error_code error;
  if (std::filesystem::create_directories(folder, error))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  return error ? "" : (folder / name).string();
}

}  // namespace lockstep::cli
