#pragma once

#include <optional>
#include <string_view>

namespace lockstep::ingest {

/// What a value in this unit is to be multiplied by, so that times are seconds, rates are per second, and bytes, cycles
/// and instructions have no prefix: "usecond" 1e-6, "Gbyte/second" 1e9, "cycle/nsecond" 1e9, "ms" 1e-3, "Ghz" 1e9, "%"
/// 0.01. 1 where it names no unit that is known, as of plain counts. Prefixes are powers of 1000, as in ncu.
double FactorOf(std::string_view unit);

}  // namespace lockstep::ingest
