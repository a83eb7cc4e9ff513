#pragma once

#include <string>

#include "model/fabric.h"

namespace lockstep::page {

/// The page (answer_page.h): bus bandwidth and time of each operation over the message size, and every two ranks alone
/// as a matrix; an earlier run's curves beside these where there is one.
std::string FabricPage(const model::Fabric& fabric, const model::Fabric* earlier = nullptr);

}  // namespace lockstep::page
