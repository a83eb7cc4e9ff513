#pragma once

#include "node/live/job_view.h"
#include "present/report/style.h"
#include "present/report/text_table.h"

namespace lockstep::top {

/// GPUs of a node, and below each that MIG divides its instances.
report::TextTable DeviceTable(const live::NodeView& node, const report::Style& style);

/// The same of all nodes, of GPUs that MIG divides alone: of others the ranks' rows tell. Empty without any.
report::TextTable DividedDeviceTable(const live::View& view, const report::Style& style);

}  // namespace lockstep::top
