#pragma once

#include <string>

#include "analysis/hang/diagnosis.h"

namespace lockstep::page {

/// A self-contained HTML page of a diagnosis: verdict, groups x ranks matrix of last enqueued, started and completed,
/// grouped stacks with their rank sets, timeline to silence, evidence, what is missing.
std::string ComposeHangPage(const hang::Diagnosis& diagnosis);

}  // namespace lockstep::page
