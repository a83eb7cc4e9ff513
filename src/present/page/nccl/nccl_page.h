#pragma once

#include <string>

#include "model/evidence/nccl_evidence.h"

namespace lockstep::page {

/// A self-contained HTML page without scripts: findings, communicators, rings and machines drawn as SVG, and the text
/// report. Light and dark by the reader's choice; every drawing has its content as text too.
std::string NcclPage(const evidence::NcclEvidence& evidence);

}  // namespace lockstep::page
