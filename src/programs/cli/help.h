#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Help in 80 columns: purpose, usage, flags in two columns with their descriptions wrapped, examples.
std::string HelpText(const CLI::App& app);

/// "lockstep export csv".
std::string FullName(const CLI::App& app);

}  // namespace lockstep::cli
