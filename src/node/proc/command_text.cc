// What a command line tells: CommandText, as it may be shown; IsLauncherCommand.
#include <algorithm>
#include <string>

#include "base/letter_case.h"
#include "base/split.h"
#include "base/utf8.h"
#include "node/proc/job_environment.h"

namespace lockstep::proc {
namespace {

constexpr size_t kMaxCommandBytes = 1024;
constexpr std::string_view kHidden = "***";

/// Whether an option or variable of this name holds a secret. "--tokenizer" and "--max-tokens" do not.
bool NamesSecret(std::string_view name) {
  const std::string lower = Lowered(name);
  for (const std::string_view word : {"password", "passwd", "secret", "apikey", "api-key", "api_key", "access-key",
                                      "access_key", "credential", "private-key", "private_key"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return lower.ends_with("token") || lower.ends_with("auth") || lower.ends_with("-pass") || lower.ends_with("_pass");
}

bool IsKnownSecret(std::string_view value) {
  for (const std::string_view prefix :
       {"hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "AKIA", "wandb_"}) {
    if (value.starts_with(prefix) && value.size() >= prefix.size() + 12) return true;
  }
  return false;
}

/// "https://user:secret@host" -> "https://***@host".
std::string HideUserInfo(std::string_view text) {
  std::string shown;
  while (true) {
    const size_t scheme = text.find("://");
    if (scheme == std::string_view::npos) break;
    const size_t begin = scheme + 3;
    const size_t end = std::min(text.find_first_of("/ ?#", begin), text.size());
    const size_t at = text.substr(begin, end - begin).rfind('@');
    shown += text.substr(0, begin);
    if (at != std::string_view::npos) shown += kHidden;
    text.remove_prefix(at == std::string_view::npos ? begin : begin + at);
  }
  shown += text;
  return shown;
}

void AppendPrintable(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const Utf8Character character = ReadUtf8(text, 0);
    const size_t length = character.valid ? character.length : 1;
    const bool printable = length > 1 || (character.valid && text[0] >= ' ' && text[0] != 0x7f);
    if (out->size() + length > kMaxCommandBytes) return;
    if (printable) {
      *out += text.substr(0, length);
    } else {
      *out += '?';
    }
    text.remove_prefix(length);
  }
}

}  // namespace

std::string CommandText(std::string_view arguments) {
  std::string command;
  bool hide_next = false;
  while (!arguments.empty() && command.size() < kMaxCommandBytes) {
    const std::string_view argument = TakePart(&arguments, '\0');
    if (!command.empty()) AppendPrintable(" ", &command);
    const size_t equals = argument.find('=');
    const bool is_option = argument.starts_with('-');
    if (hide_next && !is_option) {
      AppendPrintable(kHidden, &command);
    } else if (equals != std::string_view::npos &&
               (NamesSecret(argument.substr(0, equals)) || IsKnownSecret(argument.substr(equals + 1)))) {
      AppendPrintable(argument.substr(0, equals + 1), &command);
      AppendPrintable(kHidden, &command);
    } else if (IsKnownSecret(argument)) {
      AppendPrintable(kHidden, &command);
    } else {
      AppendPrintable(HideUserInfo(argument), &command);
    }
    hide_next = is_option && equals == std::string_view::npos && NamesSecret(argument);
  }
  return command;
}

bool IsLauncherCommand(std::string_view arguments) {
  // Interpreter, its options, then the program: what comes behind that is the program's own.
  bool is_interpreter = false;
  for (bool is_first = true; !arguments.empty(); is_first = false) {
    const std::string_view argument = TakePart(&arguments, '\0');
    if (argument == "-m" && is_interpreter) {
      const std::string_view module = arguments.substr(0, arguments.find('\0'));
      for (const std::string_view name :
           {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
            "deepspeed.launcher.launch", "deepspeed.launcher.runner"}) {
        if (module == name) return true;
      }
      return false;
    }
    if (is_interpreter && (argument == "-W" || argument == "-X")) {  // The options that take a value.
      arguments.remove_prefix(std::min(arguments.substr(0, arguments.find('\0')).size() + 1, arguments.size()));
      continue;
    }
    if (!is_first && argument.starts_with('-')) continue;
    const std::string_view name = argument.substr(argument.rfind('/') + 1);
    for (const std::string_view launcher : {"torchrun", "accelerate", "deepspeed"}) {
      if (name == launcher) return true;
    }
    if (!is_first || !name.starts_with("python")) return false;
    is_interpreter = true;
  }
  return false;
}

}  // namespace lockstep::proc
