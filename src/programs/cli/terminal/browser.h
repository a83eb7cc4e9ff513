#pragma once

#include <string>

namespace lockstep::cli {

/// Asks the desktop to show `url` (xdg-open). Returns whether a program for that was started.
bool OpenInBrowser(const std::string& url);

}  // namespace lockstep::cli
