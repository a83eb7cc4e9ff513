#pragma once

#include <string>

#include "model/kernel_profile.h"

namespace lockstep::page {

/// The page (answer_page.h): rooflines with the launches under them, sums, advice; its data is KernelDataJson().
std::string KernelProfilePage(const model::KernelProfiles& profiles);

}  // namespace lockstep::page
