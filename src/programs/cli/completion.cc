#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "base/nearest.h"
#include "present/report/report.h"
#include "programs/cli/cli.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {
namespace {

/// Prints a completion script made from the program's own commands and flags, so it never lags behind them.
class CompletionCommand : public Subcommand {
 public:
  /// `root` is asked when the command runs; it must outlive this.
  explicit CompletionCommand(const CLI::App& root) : root_(root) {}
  const char* name() const override { return "completion"; }
  const char* purpose() const override { return "Print a completion script for bash, zsh or fish"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  const CLI::App& root_;
  std::string shell_;
};

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

struct Flag {
  std::vector<std::string> names;  // "--json", "-q"
  std::string description;
  bool takes_value = false;
  bool takes_folder = false;
  bool takes_list = false;
  std::vector<std::string> values;  // empty: anything
};

struct CommandWords {
  std::string name;
  std::string description;
  std::vector<Flag> flags;
  bool takes_paths = false;
  std::vector<std::string> values;  // of its argument
  std::vector<std::string> nested;  // commands below it, whose flags are here together
};

std::vector<std::string> SplitBars(const std::string& text) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (text.find('|') != std::string::npos && at <= text.size()) {
    const size_t end = std::min(text.find('|', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> ValuesOf(const CLI::Option& option) {
  if (option.check_lname("section")) {
    std::vector<std::string> names = report::SectionNames();
    names.emplace_back("all");
    return names;
  }
  if (option.check_lname("table")) return report::CsvTableNames();
  if (option.check_lname("pass")) {
    std::vector<std::string> names;
    for (const analysis::PassInfo& pass : analysis::Passes()) names.emplace_back(pass.name);
    return names;
  }
  return SplitBars(option.get_type_name());
}

std::vector<CommandWords> CommandsOf(const CLI::App& root) {
  std::vector<CommandWords> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    CommandWords command{app->get_name(), app->get_description(), {}, false, {}, {}};
    std::vector<const CLI::Option*> options = app->get_options([](const CLI::Option*) { return true; });
    for (const CLI::App* nested : app->get_subcommands([](const CLI::App*) { return true; })) {
      command.nested.push_back(nested->get_name());
      for (const CLI::Option* option : nested->get_options([](const CLI::Option*) { return true; })) {
        const bool is_known = std::any_of(options.begin(), options.end(), [&](const CLI::Option* other) {
          return other->get_lnames() == option->get_lnames() && other->get_snames() == option->get_snames();
        });
        if (!is_known) options.push_back(option);
      }
    }
    for (const CLI::Option* option : options) {
      if (option->get_positional()) {
        command.values = SplitBars(option->get_type_name());
        command.takes_paths = command.values.empty();
        continue;
      }
      Flag flag;
      for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      flag.description = option->get_description();
      flag.takes_value = option->get_type_size() > 0;
      flag.takes_folder = option->get_type_name() == "DIR";
      flag.takes_list = option->get_type_name() == "LIST";
      if (flag.takes_value) flag.values = ValuesOf(*option);
      command.flags.push_back(std::move(flag));
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string Words(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string NamesOf(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  return Words(names);
}

std::vector<std::string> FlagNames(const CommandWords& command) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

// Lists (--section a,b) complete the part behind the last comma.
std::string Bash(const std::vector<CommandWords>& commands) {
  std::string text = "# bash completion of lockstep: eval \"$(lockstep completion bash)\"\n_lockstep() {\n";
  text +=
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" "
      "command=\"${COMP_WORDS[1]}\"\n";
  text += "  if (( COMP_CWORD == 1 )); then\n";
  text += fmt::format("    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n    return\n  fi\n",
                      NamesOf(commands));
  text += "  local head=\"\"\n  case \"$word\" in *,*) head=\"${word%,*},\" ;; esac\n  case \"$command:$before\" in\n";
  for (const CommandWords& command : commands) {
    for (const Flag& flag : command.flags) {
      if (!flag.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(command.name + ":" + name);
      const std::string reply =
          flag.takes_folder ? "COMPREPLY=($(compgen -d -- \"$word\"))"
          : flag.values.empty()
              ? "COMPREPLY=()"
              : fmt::format("COMPREPLY=($(compgen -P \"$head\" -W \"{}\" -- \"${{word##*,}}\"))", Words(flag.values));
      text += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"), reply);
    }
  }
  text += "  esac\n  case \"$command\" in\n";
  for (const CommandWords& command : commands) {
    text +=
        fmt::format("    {})\n      case \"$word\" in\n        -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n",
                    command.name, Words(FlagNames(command)));
    if (!command.nested.empty()) {
      text += fmt::format(
          "        *) if (( COMP_CWORD == 2 )); then COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
          "           else COMPREPLY=($(compgen -f -- \"$word\")); fi ;;\n      esac ;;\n",
          Words(command.nested));
      continue;
    }
    text += command.takes_paths
                ? "        *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
                : fmt::format("        *) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n", Words(command.values));
    text += "      esac ;;\n";
  }
  return text + "  esac\n}\ncomplete -o filenames -F _lockstep lockstep\n";
}

// Single quotes for zsh and fish; brackets and colons mean something to zsh.
std::string ShellQuoted(std::string_view text, bool zsh) {
  std::string quoted;
  for (const char c : text) {
    if (zsh && (c == '[' || c == ']' || c == ':' || c == '\\')) quoted += '\\';
    if (c == '\'') {
      quoted += zsh ? "'\\''" : "\\'";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string Zsh(const std::vector<CommandWords>& commands) {
  std::string text =
      "#compdef lockstep\n# zsh completion of lockstep: eval \"$(lockstep completion zsh)\"\n_lockstep() {\n  local -a "
      "commands=(\n";
  for (const CommandWords& command : commands)
    text += fmt::format("    '{}:{}'\n", command.name, ShellQuoted(command.description, true));
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe 'command' commands\n    return\n  fi\n  local "
      "command=$words[2]\n";
  text += "  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const Flag& flag : command.flags) {
      std::string action;
      if (flag.takes_value) {
        action = flag.takes_folder     ? ":folder:_files -/"
                 : flag.values.empty() ? ":value: "
                 : flag.takes_list     ? fmt::format(":value:_values -s , value {}", Words(flag.values))
                                       : fmt::format(":value:({})", Words(flag.values));
      }
      for (const std::string& name : flag.names) {
        text += fmt::format(" \\\n        '{}[{}]{}'", name, ShellQuoted(flag.description, true), action);
      }
    }
    if (!command.nested.empty()) text += fmt::format(" \\\n        '1:format:({})'", Words(command.nested));
    text += command.takes_paths ? " \\\n        '*:trace:_files' ;;\n"
                                : fmt::format(" \\\n        ':value:({})' ;;\n", Words(command.values));
  }
  return text + "  esac\n}\ncompdef _lockstep lockstep\n";
}

std::string Fish(const std::vector<CommandWords>& commands) {
  std::string text = "# fish completion of lockstep: lockstep completion fish | source\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("complete -c lockstep -f -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        ShellQuoted(command.description, false));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    for (const Flag& flag : command.flags) {
      std::string names;
      for (const std::string& name : flag.names)
        names += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += fmt::format("complete -c lockstep {}{}{} -d '{}'\n", when, names,
                          !flag.takes_value     ? ""
                          : flag.takes_folder   ? " -x -a '(__fish_complete_directories)'"
                          : flag.values.empty() ? " -x"
                                                : fmt::format(" -x -a '{}'", Words(flag.values)),
                          ShellQuoted(flag.description, false));
    }
    if (!command.nested.empty()) text += fmt::format("complete -c lockstep {} -a '{}'\n", when, Words(command.nested));
    text += command.takes_paths ? fmt::format("complete -c lockstep {} -F\n", when)
                                : fmt::format("complete -c lockstep {} -f -a '{}'\n", when, Words(command.values));
  }
  return text;
}

void CompletionCommand::Declare(CLI::App& app) {
  app.add_option("shell", shell_, "The shell that will read the script")->type_name("bash|zsh|fish");
  app.footer(
      "Examples:\n  eval \"$(lockstep completion bash)\"\n  lockstep completion fish > "
      "~/.config/fish/completions/lockstep.fish");
}

Result<int> CompletionCommand::Run(Console& console) {
  const std::vector<CommandWords> commands = CommandsOf(root_);
  if (shell_ == "bash") {
    console.out << Bash(commands);
  } else if (shell_ == "zsh") {
    console.out << Zsh(commands);
  } else if (shell_ == "fish") {
    console.out << Fish(commands);
  } else {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = shell_.empty() ? "completion needs a shell: bash, zsh or fish"
                                           : fmt::format("no completion for '{}', only for bash, zsh and fish{}",
                                                         shell_, DidYouMean(shell_, kShells))};
  }
  return kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeCompletion(const CLI::App& root) { return std::make_unique<CompletionCommand>(root); }

}  // namespace lockstep::cli
