#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/proc_stat.h"

namespace lockstep::inspect {

/// Text of /proc/PID/`name`, at most `limit_bytes` of it; nullopt: it may not be read, or is not there.
std::optional<std::string> ReadProcFile(pid_t pid, std::string_view name, size_t limit_bytes = size_t{64} << 10);
/// What the symbolic link /proc/PID/`name` names; "" = it may not be read.
std::string ReadProcLink(pid_t pid, std::string_view name);
/// Entries of a folder of /proc whose names are numbers, ascending, at most `limit`.
std::vector<int64_t> ListNumbers(const std::string& folder, size_t limit);

/// "Name:   value" lines, such as status, io and memory.events (there "name value"); values without what surrounds
/// them.
std::map<std::string, std::string, std::less<>> ParseFields(std::string_view text);
/// Field `name` as a number.
std::optional<int64_t> NumberOf(const std::map<std::string, std::string, std::less<>>& fields, std::string_view name);

/// What a thread that sleeps in the kernel shows in /proc/PID/task/TID/syscall: "nr arg*6 sp pc", or "running".
struct BlockedCall {
  int64_t number = -1;  ///< Of the system call; -1: blocked outside of one, as in a page fault.
  uint64_t stack_pointer = 0;
  uint64_t program_counter = 0;
};
std::optional<BlockedCall> ParseBlockedCall(std::string_view text);

int64_t MonotonicNs();
int64_t UnixNs();

}  // namespace lockstep::inspect
