#include "node/agent/daemon/flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>

#include "base/help_entry.h"
#include "base/nearest.h"

namespace lockstep::agent {
namespace {

constexpr const char* kSystemFile = "/etc/lockstep/lockstep.toml";
constexpr int kMisused = 2;

/// The same look as `lockstep --help`: 80 columns, flags in two.
class HelpText : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string /*name*/, CLI::AppFormatMode /*mode*/) const override {
    std::string text = app->get_description() + "\n\nUsage: lockstepd [flags]\n";
    const auto options = app->get_options([](const CLI::Option*) { return true; });
    for (const std::string& group : app->get_groups()) {
      std::string entries;
      for (const CLI::Option* option : options) {
        if (option->get_group() == group && !group.empty())
          entries += HelpEntry(Names(*option), option->get_description());
      }
      if (!entries.empty()) text += fmt::format("\n{}:\n{}", group == "Options" ? "General" : group, entries);
    }
    return text + "\n" + app->get_footer() + "\n";
  }

 private:
  static std::string Names(const CLI::Option& option) {
    std::string text;
    for (const std::string& name : option.get_snames()) text += "-" + name + ", ";
    for (const std::string& name : option.get_lnames()) text += "--" + name;
    if (option.get_type_size() > 0 && !option.get_type_name().empty()) text += " " + option.get_type_name();
    return text;
  }
};

void Declare(CLI::App* app, DaemonFlags* flags) {
  app->formatter(std::make_shared<HelpText>());
  app->set_help_flag("-h,--help", "this text");
  app->set_version_flag("--version", "lockstepd " LOCKSTEP_VERSION, "version");
  app->add_option("--config", flags->config_file, "settings; by default root's /etc/lockstep/lockstep.toml, if there")
      ->type_name("FILE");
  app->add_flag("--check", flags->check, "check the settings and end");
  app->add_option("--socket", flags->socket, "Unix socket for the commands of this host")
      ->type_name("PATH")
      ->group("Listening");
  app->add_option("--port", flags->port, "TCP port on 127.0.0.1 (9476), 0 for any free one, or none")
      ->type_name("N|none")
      ->group("Listening");
  app->add_option("--listen", flags->listen, "another address and port, such as 10.0.0.1:9476; needs TLS")
      ->type_name("ADDRESS:PORT")
      ->group("Listening");
  app->add_flag("--insecure-no-auth", flags->insecure_no_auth, "listen without TLS and let anyone trace anything")
      ->group("Listening");
  app->add_option("--dynolog-rpc", flags->dynolog_port, "answer Dynolog's own client on this port (1778)")
      ->type_name("[=PORT]")
      ->expected(0, 1)
      ->group("Listening");
  app->add_option("--kineto-name", flags->kineto_name, "abstract socket that processes poll (dynolog); empty: none")
      ->type_name("NAME")
      ->group("Processes");
  app->add_option("--kineto-dir", flags->kineto_directories,
                  "folder for a socket too, as in the processes' KINETO_IPC_SOCKET_DIR; may be repeated")
      ->type_name("DIR")
      ->group("Processes");
  app->add_option("--output", flags->output, "where processes write, as they see it")
      ->type_name("DIR")
      ->group("Processes");
  app->add_flag("--allow-unsafe", flags->allow_unsafe, "let captures trace processes that Kineto may crash")
      ->group("Processes");
  app->add_option("--state", flags->state, "what the daemon remembers")->type_name("DIR")->group("Processes");
  app->add_option("--lease", flags->lease_file, "end when no process holds a lock on this file any more")
      ->type_name("FILE")
      ->group("Processes");
  app->add_option("--log-level", flags->log_level, "debug, info, warning or error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}).description(""))
      ->group("Log");
  app->add_option("--log-file", flags->log_file, "instead of standard error; opened anew on SIGHUP")
      ->type_name("FILE")
      ->group("Log");
  app->footer("Examples:\n  lockstepd --check\n  lockstepd --socket /tmp/me/lockstepd.sock --port none");
}

// "unknown flag --sokcet; did you mean '--socket'?"
std::string UnknownFlag(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("unknown argument {}{}", name, DidYouMean(name, known));
}

}  // namespace

std::optional<DaemonFlags> ReadFlags(int argc, char** argv, int* exit_status) {
  DaemonFlags flags;
  CLI::App app("The daemon of a node: traces its PyTorch processes when lockstep asks for it.", "lockstepd");
  Declare(&app, &flags);
  app.allow_extras();
  try {
    app.parse(argc, argv);
    if (const auto surplus = app.remaining(); !surplus.empty()) {
      fmt::print(stderr, "lockstepd: {}\n", UnknownFlag(app, surplus.front()));
      *exit_status = kMisused;
      return std::nullopt;
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *exit_status = app.exit(error);
    } else {
      fmt::print(stderr, "lockstepd: {}\n", error.what());
      *exit_status = kMisused;
    }
    return std::nullopt;
  }
  flags.dynolog_rpc = app.count("--dynolog-rpc") > 0;
  return flags;
}

Result<DaemonConfig> LoadConfig(const DaemonFlags& flags) {
  DaemonConfig config = DefaultConfig();
  std::error_code error;
  if (!flags.config_file.empty()) {
    RETURN_IF_ERROR(ApplyFile(flags.config_file, &config));
  } else if (::geteuid() == 0 && std::filesystem::exists(kSystemFile, error)) {
    RETURN_IF_ERROR(ApplyFile(kSystemFile, &config));
  }
  if (flags.socket) config.unix_socket = *flags.socket;
  if (flags.port) {
    config.listen.clear();
    if (*flags.port != "none") {
      Result<ListenAddress> address = ParseListenAddress("127.0.0.1:" + *flags.port);
      if (!address) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("--port takes a number to 65535 or none, not '{}'", *flags.port)};
      }
      config.listen.push_back(*address);
    }
  }
  for (const std::string& text : flags.listen) {
    ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
    config.listen.push_back(std::move(address));
  }
  config.insecure_no_auth |= flags.insecure_no_auth;
  if (flags.state) config.state_folder = *flags.state;
  if (flags.output) config.output_folder = *flags.output;
  config.allow_unsafe_captures = config.allow_unsafe_captures || flags.allow_unsafe;
  if (flags.kineto_name) config.kineto_name = *flags.kineto_name;
  if (!flags.kineto_directories.empty()) config.kineto_directories = flags.kineto_directories;
  if (flags.dynolog_rpc) config.dynolog_rpc = true;
  if (flags.dynolog_port) config.dynolog_port = *flags.dynolog_port;
  config.lease_file = flags.lease_file;
  if (!flags.log_level.empty()) config.log_level = flags.log_level;
  if (!flags.log_file.empty()) config.log_file = flags.log_file;
  RETURN_IF_ERROR(ResolveConfig(&config));
  return config;
}

}  // namespace lockstep::agent
