#include "programs/cli/text_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/output_file.h"
#include "programs/cli/run_input.h"

namespace lockstep::cli {

void TextFlags::Declare(CLI::App& app) {
  app.add_option("--width", width_, "Text: columns, 40 to 1000 (the terminal's, at most 120; 80 elsewhere)")
      ->type_name("COLUMNS")
      ->check(Checked(CLI::Range(40, 1000)));
  app.add_option("--color,--colour", colour_, "When to use colour (auto: on a terminal without NO_COLOR)")
      ->type_name("auto|always|never")
      ->check(Checked(CLI::IsMember({"auto", "always", "never"})));
  app.add_flag("--no-color,--no-colour", no_colour_, "The same as --color never");
  app.add_flag("--ascii", ascii_, "Bars and marks in ASCII (default where the locale is not UTF-8)");
}

report::TextOptions TextFlags::Options(const Console& console, size_t top) const {
  report::TextOptions text;
  text.width = width_ > 0 ? width_ : console.Width();
  const ColourMode mode = no_colour_ || colour_ == "never" ? ColourMode::kNever
                          : colour_ == "always"            ? ColourMode::kAlways
                                                           : ColourMode::kAuto;
  text.colour = console.UseColour(mode);
  text.unicode = !ascii_ && LocaleIsUtf8();
  text.top = top;
  return text;
}

Status CheckPagePath(const std::string& path) {
  if (path.empty()) return {};
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".html" && ending != ".htm") {
    return Misuse(
        fmt::format("--output {}: the page is HTML, so its name ends in .html; --json and --csv write data", path));
  }
  return CheckOutputFile(path);
}

}  // namespace lockstep::cli
