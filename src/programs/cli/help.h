#pragma once

#include <CLI/App.hpp>
#include <string>

namespace lockstep::cli {

/// Help in 80 columns: purpose, usage, flags in two columns with their descriptions wrapped, examples.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  /// "lockstep export csv".
  static std::string FullName(const CLI::App& app);

 private:
  static std::string Entry(const std::string& left, const std::string& description);
  static std::string OptionNames(const CLI::Option& option);
};

}  // namespace lockstep::cli
