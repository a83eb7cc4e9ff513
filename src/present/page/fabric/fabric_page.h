#pragma once

#include <string>

#include "model/fabric.h"

namespace lockstep::page {

/// A self-contained HTML page without scripts: bus bandwidth and time of each operation over the message size, and
/// every two ranks alone as a matrix, as SVG with a table beside each; an earlier run's curves beside these where there
/// is one. Light and dark by the reader's choice.
std::string FabricPage(const model::Fabric& fabric, const model::Fabric* earlier = nullptr);

}  // namespace lockstep::page
