#include "programs/cli/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <clocale>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd_buffer.h"
#include "base/nearest.h"
#include "base/team.h"
#include "present/report/utf8.h"
#include "programs/cli/help.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/progress.h"
#include "programs/cli/version.h"

namespace lockstep::cli {

// Each stands in the file of its name.
std::unique_ptr<Subcommand> MakeAnalyze();
std::unique_ptr<Subcommand> MakeBench();
std::unique_ptr<Subcommand> MakeCapture();
std::unique_ptr<Subcommand> MakeCompare();
std::unique_ptr<Subcommand> MakeCompletion(const CLI::App& root);
std::unique_ptr<Subcommand> MakeDoctor();
std::unique_ptr<Subcommand> MakeExport();
std::unique_ptr<Subcommand> MakeHang();
std::unique_ptr<Subcommand> MakeKernels();
std::unique_ptr<Subcommand> MakeLogs();
std::unique_ptr<Subcommand> MakeMerge();
std::unique_ptr<Subcommand> MakeNcclLog();
std::unique_ptr<Subcommand> MakeOpen();
std::unique_ptr<Subcommand> MakeQuery();
std::unique_ptr<Subcommand> MakeRun();
std::unique_ptr<Subcommand> MakeScaling();
std::unique_ptr<Subcommand> MakeScript();
std::unique_ptr<Subcommand> MakeServe();
std::unique_ptr<Subcommand> MakeStatus();
std::unique_ptr<Subcommand> MakeTop();
std::unique_ptr<Subcommand> MakeTunnel();
std::unique_ptr<Subcommand> MakeVersion();
std::unique_ptr<Subcommand> MakeWatch();

namespace {

/// CLI11 lets a repeatable option take all values behind it, and with them the command's paths.
void TakeOneValueAtATime(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) option->allow_extra_args(false);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) TakeOneValueAtATime(*command);
}

class Program {
 public:
  explicit Program(bool has_team)
      : root_("Where the time of a distributed training job goes, and which rank holds it up",
              has_team ? "lockstep-mpi" : "lockstep") {
    root_.set_help_flag("-h,--help", "Print this help");
    root_.set_version_flag("--version", VersionText(), "Print the version");
    root_.require_subcommand(0, 1);
    if (has_team) {
      root_.footer(
          "Started by mpirun or srun --mpi=pmix; --deadline SECONDS ends it when it is not done by then (3600).\n\n"
          "Examples:\n  mpirun -np 4 lockstep-mpi analyze traces/\n  srun --mpi=pmix -K -N4 lockstep-mpi analyze "
          "/local/traces --json");
      Add({MakeAnalyze, MakeCompare, MakeHang, MakeMerge, MakeVersion});
    } else {
      root_.footer("Examples:\n  lockstep analyze traces/\n  lockstep analyze --help");
      Add({MakeAnalyze, MakeBench,  MakeCapture, MakeCompare, MakeScaling, MakeHang,  MakeKernels,
           MakeNcclLog, MakeLogs,   MakeMerge,   MakeServe,   MakeOpen,    MakeQuery, MakeExport,
           MakeRun,     MakeScript, MakeDoctor,  MakeStatus,  MakeTop,     MakeWatch, MakeTunnel});
      commands_.push_back(MakeCompletion(root_));
      Add({MakeVersion});
    }
    for (const auto& command : commands_) {
      CLI::App* app = root_.add_subcommand(command->name(), command->purpose());
      app->set_help_flag("-h,--help", "Print this help");
      command->Declare(*app);
    }
    TakeOneValueAtATime(root_);
  }

  int Run(int argc, char** argv, Console& console) {
    if (argc > 1 && argv[1][0] != '-' && CommandNamed(argv[1]) == nullptr) {
      return Misused(console, fmt::format("unknown command '{}'{}", argv[1], DidYouMean(argv[1], CommandNames())),
                     "lockstep");
    }
    argc = SplitOffCommandLine(argc, argv);
    try {
      root_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      console.out << HelpText(*Parsed());
      return kDone;
    } catch (const CLI::CallForVersion&) {
      console.out << VersionText() << '\n';
      return kDone;
    } catch (const CLI::ExtrasError&) {
      return Surplus(console);
    } catch (const CLI::ParseError& error) {
      return Misused(console, error.what(), FullName(*Parsed()));
    }
    if (root_.get_subcommands().empty()) {
      console.err << HelpText(root_);
      return kMisused;
    }
    const Result<int> status = CommandNamed(root_.get_subcommands().front()->get_name())->Run(console);
    if (status) return *status;
    if (status.error().code == ErrorCode::kInvalidArgument && status.error().file.empty()) {
      return Misused(console, status.error().ToString(), FullName(*Parsed()));
    }
    console.err << "lockstep: " << report::Printable(status.error().ToString()) << '\n';
    return kFailed;
  }

 private:
  void Add(std::initializer_list<std::unique_ptr<Subcommand> (*)()> makers) {
    for (const auto make : makers) commands_.push_back(make());
  }

  Subcommand* CommandNamed(const std::string& name) const {
    for (const auto& command : commands_) {
      if (name == command->name()) return command.get();
    }
    return nullptr;
  }

  // CLI11 takes words after "--" for arguments of the program itself. Returns how many words are left to parse.
  int SplitOffCommandLine(int argc, char** argv) const {
    Subcommand* command = argc > 1 ? CommandNamed(argv[1]) : nullptr;
    if (command == nullptr || !command->TakesCommandLine()) return argc;
    for (int i = 2; i < argc; ++i) {
      if (std::string_view(argv[i]) != "--") continue;
      command->SetCommandLine({argv + i + 1, argv + argc});
      return i;
    }
    return argc;
  }

  std::vector<std::string> CommandNames() const {
    std::vector<std::string> names;
    for (const auto& command : commands_) names.emplace_back(command->name());
    return names;
  }

  // The innermost subcommand that parsing reached, else the program.
  const CLI::App* Parsed() const {
    const CLI::App* app = &root_;
    for (auto parsed = app->get_subcommands(); !parsed.empty(); parsed = app->get_subcommands()) app = parsed.front();
    return app;
  }

  static int Misused(Console& console, const std::string& message, const std::string& command) {
    console.err << fmt::format("lockstep: {}\nSee '{} --help'.\n", report::Printable(message), command);
    return kMisused;
  }

  // What is left over after parsing: an unknown flag, or an argument too many.
  int Surplus(Console& console) const {
    const CLI::App* app = Parsed();
    const std::vector<std::string> rest = root_.remaining(true);
    for (const std::string& word : rest) {
      if (word.size() < 2 || word[0] != '-') continue;
      const std::string flag = word.substr(0, word.find('='));
      std::vector<std::string> known;
      for (const CLI::Option* option : app->get_options([](const CLI::Option*) { return true; })) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
        for (const std::string& name : option->get_snames()) known.push_back("-" + name);
      }
      return Misused(console, fmt::format("unknown flag '{}'{}", flag, DidYouMean(flag, known)), FullName(*app));
    }
    std::vector<std::string> nested;
    for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
      nested.push_back(command->get_name());
    if (!nested.empty() && !rest.empty()) {
      return Misused(console,
                     fmt::format("unknown {} '{}'{} (known: {})", app->get_name(), rest.front(),
                                 DidYouMean(rest.front(), nested), fmt::join(nested, ", ")),
                     FullName(*app));
    }
    return Misused(console, fmt::format("surplus argument '{}'", rest.empty() ? "" : rest.front()), FullName(*app));
  }

  CLI::App root_;
  std::vector<std::unique_ptr<Subcommand>> commands_;
};

// Any exception that gets this far is a library's or ours: one line, no stack of terms.
int Guarded(int argc, char** argv, Console& console) {
  try {
    return Program(console.team != nullptr).Run(argc, argv, console);
  } catch (const std::bad_alloc&) {
    console.err << "lockstep: out of memory; give it fewer files at a time, or a machine with more memory\n";
  } catch (const TeamError& error) {
    console.err << "lockstep: " << report::Printable(error.what()) << '\n';
  } catch (const std::exception& error) {
    console.err << "lockstep: " << error.what() << "; this is a fault of lockstep, please report it\n";
  }
  return kFailed;
}

}  // namespace

namespace {

int Print(int argc, char** argv, bool may_be_terminal, ingest::TeamIngest* team, ingest::TeamEvidence* team_evidence) {
  std::setlocale(LC_CTYPE, "");  // numbers stay in the C locale
  InstallSignalHandlers();
  FdBuffer buffer(STDOUT_FILENO);
  std::ostream out(&buffer);
  Console console{out,
                  std::cerr,
                  may_be_terminal && ::isatty(STDOUT_FILENO) == 1,
                  may_be_terminal && ::isatty(STDERR_FILENO) == 1,
                  team,
                  team_evidence};
  const int status = Guarded(argc, argv, console);
  out.flush();
  // A reader that has gone has what it wanted; anything else means that output is missing.
  if (buffer.error() != 0 && buffer.error() != EPIPE) {
    std::cerr << "lockstep: standard output cannot be written: " << std::strerror(buffer.error()) << '\n';
    return kFailed;
  }
  return status;
}

}  // namespace

int Main(int argc, char** argv) { return Print(argc, argv, true, nullptr, nullptr); }

int TeamMain(int argc, char** argv, ingest::TeamIngest* team, ingest::TeamEvidence* team_evidence) {
  return Print(argc, argv, false, team, team_evidence);
}

}  // namespace lockstep::cli
