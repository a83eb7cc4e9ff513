#pragma once

#include <optional>
#include <string_view>

#include "model/kernel_profile.h"

namespace lockstep::ingest {

/// Whether the text holds a table of `ncu --csv`, perhaps behind lines that ncu or the program printed.
bool LooksLikeNcuCsv(std::string_view text);

/// Adds the launches of `ncu --csv --page raw` or `--page details` to `profiles`: times, throughputs as shares of what
/// the device sustains, arithmetic and DRAM traffic with their ceilings, rules. Units are read from the file. Ledger:
/// "ncu_rows_skipped" (the program's own output in between), "ncu_measured_nothing". Formulas of the ceilings: those of
/// Nsight Compute's roofline sections; docs/formats/kernel-profiles.md.
void ReadNcuCsv(std::string_view text, std::string_view file, std::optional<int32_t> rank,
                model::KernelProfiles* profiles);

}  // namespace lockstep::ingest
