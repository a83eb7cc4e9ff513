#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "node/control/api/process.h"

namespace lockstep::agent {

/// `text` with only [A-Za-z0-9_-] left, other bytes as single hyphens, at most `limit` characters; neither end is a
/// hyphen. Dots go too, so that no part can hold ".json".
std::string SafePart(std::string_view text, size_t limit);

/// The name that a process's trace is asked for and downloaded under: "JOB-HOST-rankR-pidP-START.json" with START as
/// 20261122T010226123Z; job and rank are left out where they are not known. The rank is read back by the rules of
/// docs/formats/file-names.md. One ".json", at the end: Kineto puts the pid before the first one that it finds.
std::string TraceName(const control::Process& process, std::string_view host, int64_t start_unix_ns);

/// 2026-11-22T01:02:26.123Z as 20261122T010226123Z.
std::string CompactUtc(int64_t unix_ns);
/// "01:02:26 UTC", for messages.
std::string ClockUtc(int64_t unix_ns);

}  // namespace lockstep::agent
