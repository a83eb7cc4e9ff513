#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/column.h"
#include "base/ids.h"

namespace lockstep::model {

/// One quantity over time: a hardware metric of a device, a counter that the program keeps. A value holds from its time
/// on until the next one.
struct CounterSeries {
  std::string name;                          ///< As written, without the unit: "SMs Active", "tokens".
  std::string unit;                          ///< "%", "bytes", "bytes/s"; empty when the source does not say.
  std::optional<DeviceOrdinal> device = {};  ///< Absent: of the process or its host.
  Column<int64_t> time_ns;                   ///< Ascending. Trace clock, as EventColumns::start_ns.
  Column<double> value;                      ///< As long as time_ns.

  size_t size() const { return time_ns.size(); }
};

}  // namespace lockstep::model
