#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

/// A word as a POSIX shell has to be given it: as it is where that is safe, else in single quotes.
std::string ShellWord(const std::string& word);

/// Words with spaces between.
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace lockstep::launch
