#pragma once

#include <string>
#include <vector>

#include "model/fabric.h"

namespace lockstep::page {

/// Points of one operation, by size.
struct FabricCurve {
  std::string operation;
  std::vector<const model::FabricPoint*> points;
  std::vector<const model::FabricPoint*> earlier;  ///< Of another run.
};

/// In the order of the points, which is by operation and size.
std::vector<FabricCurve> CurvesOf(const model::Fabric& fabric, const model::Fabric* earlier = nullptr);

enum class CurveQuantity : uint8_t { kBusBandwidth, kTime };

/// The curves over message size, both axes in powers, with their keys below; a band from the slowest rank to the
/// fastest; an earlier run's are dashed, without a band. Points are told apart by shape, too. Empty when no point has
/// the quantity.
std::string CurvesSvg(const std::vector<FabricCurve>& curves, CurveQuantity quantity, const std::string& title);

}  // namespace lockstep::page
