#pragma once

#include <string>

#include "model/evidence/nccl_evidence.h"

namespace lockstep::page {

/// The page (answer_page.h): findings, communicators, rings, trees, machines; its data is NcclDataJson().
std::string NcclPage(const evidence::NcclEvidence& evidence);

}  // namespace lockstep::page
