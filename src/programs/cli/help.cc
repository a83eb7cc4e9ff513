#include "programs/cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include "base/help_entry.h"

namespace lockstep::cli {
namespace {

std::string OptionNames(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_type_size() > 0 && !option.get_type_name().empty()) text += " " + option.get_type_name();
  return text;
}

}  // namespace

std::string FullName(const CLI::App& app) {
  return app.get_parent() == nullptr ? "lockstep" : FullName(*app.get_parent()) + " " + app.get_name();
}

std::string HelpText(const CLI::App& app) {
  std::string text = app.get_description() + "\n\nUsage: " + FullName(app);
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (!commands.empty()) text += " <command>";
  text += " [flags]";
  if (app.get_prefix_command()) text += " -- CMD [ARG...]";
  const auto options = app.get_options([](const CLI::Option*) { return true; });
  for (const CLI::Option* option : options) {
    if (option->get_positional()) text += " " + option->get_type_name();
  }
  text += "\n";
  if (!commands.empty()) {
    text += "\nCommands:\n";
    for (const CLI::App* command : commands) text += HelpEntry(command->get_name(), command->get_description());
  }
  for (const CLI::Option* option : options) {
    if (option->get_positional()) text += "\n" + HelpEntry(option->get_type_name(), option->get_description());
  }
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : options) {
      if (option->nonpositional() && option->get_group() == group && !group.empty()) {
        entries += HelpEntry(OptionNames(*option), option->get_description());
      }
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group == "Options" ? "General" : group, entries);
  }
  if (!app.get_footer().empty()) text += "\n" + app.get_footer() + "\n";
  return text;
}

}  // namespace lockstep::cli
