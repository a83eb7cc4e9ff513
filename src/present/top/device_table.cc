#include "present/top/device_table.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "present/report/format.h"
#include "present/top/figure_text.h"

namespace lockstep::top {
namespace {

using live::GpuView;
using live::NodeView;
using report::Align;
using report::FormatPercent;
using report::TextTable;

std::string BytesText(const std::optional<double>& bytes) { return report::FormatBytes(WholeFigure(bytes)); }

TextTable EmptyTable() {
  return TextTable({{.header = "node", .align = Align::kLeft, .drop = 1},
                    {.header = "gpu", .align = Align::kLeft},
                    {.header = "what", .align = Align::kLeft, .flexible = true},
                    {.header = "busy", .drop = 2},
                    {.header = "SMs busy"},
                    {.header = "memory"},
                    {.header = "of"},
                    {.header = "temp", .drop = 3},
                    {.header = "power", .drop = 4}});
}

void AddGpu(const NodeView& node, const GpuView& gpu, const report::Style& style, TextTable* table) {
  const live::GpuReading& reading = gpu.reading;
  const std::string host = OrDash(node.host);
  table->AddRow({host, OrDash(reading.gpu), OrDash(reading.model), FormatPercent(reading.utilization_ratio),
                 FormatPercent(reading.sm_active_ratio), BytesText(reading.memory_used_bytes),
                 BytesText(reading.memory_total_bytes),
                 RoundedText(reading.temperature_celsius, style.unicode ? "°C" : "C"),
                 RoundedText(gpu.power_watts, "W")});
  for (const auto& [gi, instance] : reading.mig_instances) {
    table->AddRow({host, fmt::format("{}/{}", OrDash(reading.gpu), OrDash(gi)), "MIG " + OrDash(instance.profile), "-",
                   FormatPercent(instance.sm_active_ratio), BytesText(instance.memory_used_bytes),
                   BytesText(instance.memory_total_bytes), "-", "-"});
  }
}

}  // namespace

TextTable DeviceTable(const NodeView& node, const report::Style& style) {
  TextTable table = EmptyTable();
  for (const GpuView& gpu : node.gpus) AddGpu(node, gpu, style, &table);
  return table;
}

TextTable DividedDeviceTable(const live::View& view, const report::Style& style) {
  TextTable table = EmptyTable();
  for (const NodeView& node : view.nodes) {
    for (const GpuView& gpu : node.gpus) {
      if (!gpu.reading.mig_instances.empty()) AddGpu(node, gpu, style, &table);
    }
  }
  return table;
}

}  // namespace lockstep::top
