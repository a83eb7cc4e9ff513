#pragma once

#include <ostream>

#include "measure/collectives/measure.h"

namespace lockstep::report {

/// The table of nccl-tests, row by row as they come: bytes in 8-byte columns, times in us, bandwidths in GB/s of 10^9,
/// out of place and in place, elements that were wrong.
void WriteBenchHead(const collective_bench::Plan& plan, std::ostream& out);
void WriteBenchRow(const collective_bench::Plan& plan, const collective_bench::Row& row, std::ostream& out);
/// What comes behind: who was wrong, the spread of ranks at the largest sizes, pairs, slow links.
void WriteBenchTail(const collective_bench::Results& results, std::ostream& out);

/// lockstep.bench-collectives/1: docs/json.md.
void WriteBenchJson(const collective_bench::Results& results, std::ostream& out);
/// A line per row and way of calling it, with a header.
void WriteBenchCsv(const collective_bench::Results& results, std::ostream& out);

/// Elements that were wrong, over all rows.
uint64_t WrongCount(const collective_bench::Results& results);

}  // namespace lockstep::report
