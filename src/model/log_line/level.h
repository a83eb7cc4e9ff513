#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::logs {

/// How bad a line says it is. In this order.
enum class Level : uint8_t { kTrace, kDebug, kInfo, kWarning, kError, kFatal };

char LevelLetter(Level level);       ///< 'T', 'D', 'I', 'W', 'E', 'F': the text line's.
const char* LevelName(Level level);  ///< "trace", ..., "fatal": the JSON line's.
std::optional<Level> LevelOfLetter(char letter);
/// Of a name in any case, Python's "WARN" and "CRITICAL" too.
std::optional<Level> LevelOfName(std::string_view name);

/// What a line of a program's own output says of its level: glog's head ("E1121 03:35:23"), a level's name as a word in
/// capitals within the first 96 bytes, the marks of an uncaught exception or of a fatal signal; nullopt: nothing.
std::optional<Level> ReadLevel(std::string_view text);

/// ReadLevel line by line, for one stream of one process: a Python traceback is one error to its last line. A line
/// without a level is kInfo.
class LevelReader {
 public:
  Level Next(std::string_view text);

 private:
  bool in_traceback_ = false;
};

}  // namespace lockstep::logs
