#include "present/page/kernel_profile/kernel_profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "present/page/html.h"
#include "present/page/plain_page.h"
#include "present/report/format.h"
#include "present/report/kernel_profile/kernel_profile_report.h"

namespace lockstep::page {
namespace {

using analysis::RooflinePoint;
using model::KernelLaunch;

constexpr const char* kStyle = R"(
:root { --accent: #0b57d0; --roof: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --accent: #8ab4f8; --roof: #ff8a80; } }
td.name { overflow-wrap: anywhere; max-width: 34rem; }
svg .roof { stroke: var(--roof); stroke-width: 2; fill: none; } svg .point { fill: var(--accent); stroke: var(--paper); }
svg .point-name { font-weight: 600; fill: var(--paper); }
)";

struct PlacedLaunch {
  const KernelLaunch* launch = nullptr;
  RooflinePoint point;
};

/// Within what devices may be said to do: a drawing of a hundred decades shows nothing.
bool CanBeDrawn(const RooflinePoint& point) {
  const auto within = [](double value, double least, double most) { return value >= least && value <= most; };
  return within(point.flops_per_byte, 1e-6, 1e9) && within(point.ridge_flops_per_byte, 1e-6, 1e9) &&
         within(point.flops_per_s, 1, 1e19) && within(point.peak_flops_per_s, 1, 1e19);
}

/// Powers of ten that hold both, at least one apart.
std::pair<int, int> Decades(double least, double most) {
  const int low = static_cast<int>(std::floor(std::log10(least)));
  const int high = static_cast<int>(std::ceil(std::log10(most)));
  return {low, std::max(high, low + 1)};
}

std::string IntensityLabel(int decade) {
  return decade >= 0 ? fmt::format("{:.0f}", std::pow(10, decade))
                     : fmt::format("{:.{}f}", std::pow(10, decade), -decade);
}

/// Both axes in decades: arithmetic intensity to the right, operations a second upwards.
class RooflineDrawing {
 public:
  explicit RooflineDrawing(const std::vector<PlacedLaunch>& launches) : launches_(launches) {
    double least_x = INFINITY, most_x = 0, least_y = INFINITY, most_y = 0;
    for (const PlacedLaunch& placed : launches) {
      const RooflinePoint& point = placed.point;
      least_x = std::min({least_x, point.flops_per_byte, point.ridge_flops_per_byte / 10});
      most_x = std::max({most_x, point.flops_per_byte, point.ridge_flops_per_byte * 10});
      least_y = std::min({least_y, point.flops_per_s, point.peak_flops_per_s / 100});
      most_y = std::max(most_y, point.peak_flops_per_s);
    }
    std::tie(x_low_, x_high_) = Decades(least_x, most_x);
    std::tie(y_low_, y_high_) = Decades(least_y, most_y);
  }

  std::string Svg(const std::string& title) const {
    std::string svg = fmt::format(
        "<div class=\"wide\"><svg role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\"><title>{2}</title>\n",
        kWidth, kHeight, EscapeHtml(title));
    for (int x = x_low_; x <= x_high_; ++x) {
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"axis\" x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          X(std::pow(10, x)), kTop, kHeight - kBottom, kHeight - kBottom + 18, IntensityLabel(x));
    }
    for (int y = y_low_; y <= y_high_; ++y) {
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text class=\"axis\" x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          kLeft, Y(std::pow(10, y)), kWidth - kRight, kLeft - 6, Y(std::pow(10, y)) + 4,
          report::FormatFlopRate(std::pow(10, y)));
    }
    svg += fmt::format(
        "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations per byte of DRAM "
        "traffic</text>\n",
        (kLeft + kWidth - kRight) / 2, kHeight - 6);
    svg += Roof(launches_.front().point);
    for (size_t i = 0; i < launches_.size(); ++i) svg += Point(i);
    return svg + "</svg></div>\n";
  }

 private:
  static constexpr int kWidth = 860, kHeight = 420, kLeft = 96, kRight = 24, kTop = 16, kBottom = 44;

  double X(double intensity) const {
    return kLeft + (std::log10(intensity) - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double Y(double rate) const {
    return kHeight - kBottom - (std::log10(rate) - y_low_) / (y_high_ - y_low_) * (kHeight - kTop - kBottom);
  }

  /// The longest launch's: clocks differ a little between launches.
  std::string Roof(const RooflinePoint& point) const {
    const double bytes_per_s = point.peak_flops_per_s / point.ridge_flops_per_byte;
    const double from = std::max(std::pow(10, x_low_), std::pow(10, y_low_) / bytes_per_s);
    return fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{}\"/>\n", X(from), Y(from * bytes_per_s),
                       X(point.ridge_flops_per_byte), Y(point.peak_flops_per_s), kWidth - kRight);
  }

  std::string Point(size_t i) const {
    const RooflinePoint& point = launches_[i].point;
    const double x = X(point.flops_per_byte), y = Y(point.flops_per_s);
    return fmt::format(
        "<g><title>{}: {} at {} operations per byte, {} of the roof</title><circle class=\"point\" "
        "cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/><text class=\"point-name\" text-anchor=\"middle\" x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}"
        "</text></g>\n",
        EscapeHtml(launches_[i].launch->kernel), report::FormatFlopRate(point.flops_per_s),
        report::FormatNumber(point.flops_per_byte), report::FormatPercent(point.roof_ratio), x, y, x, y + 4, i + 1);
  }

  const std::vector<PlacedLaunch>& launches_;
  int x_low_ = 0, x_high_ = 1, y_low_ = 0, y_high_ = 1;
};

std::string PointTable(const std::vector<PlacedLaunch>& launches) {
  std::string html =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Launches under the roofline\"><table><thead><tr>"
      "<th scope=\"col\" class=\"number\">No.</th><th scope=\"col\">Kernel</th><th scope=\"col\" "
      "class=\"number\">Rank</th>"
      "<th scope=\"col\" class=\"number\">Time</th><th scope=\"col\" class=\"number\">FLOP/B</th>"
      "<th scope=\"col\" class=\"number\">Achieved</th><th scope=\"col\" class=\"number\">Roof</th>"
      "<th scope=\"col\" class=\"number\">Of roof</th><th scope=\"col\">Bound by</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < launches.size(); ++i) {
    const KernelLaunch& launch = *launches[i].launch;
    const RooflinePoint& point = launches[i].point;
    html += fmt::format(
        "<tr><td class=\"number\">{}</td><td class=\"name\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td>"
        "<td class=\"number\">{}</td><td>{}</td></tr>\n",
        i + 1, EscapeHtml(launch.kernel), launch.rank ? std::to_string(*launch.rank) : "-",
        report::FormatDuration(launch.duration_ns), report::FormatNumber(point.flops_per_byte),
        report::FormatFlopRate(point.flops_per_s), report::FormatFlopRate(point.roof_flops_per_s),
        report::FormatPercent(point.roof_ratio), analysis::KernelBoundName(analysis::BoundOf(launch)));
  }
  return html + kCloseTable;
}

}  // namespace

std::string KernelProfilePage(const model::KernelProfiles& profiles) {
  constexpr size_t kPointLimit = 200;
  std::map<std::pair<std::string, model::Precision>, std::vector<PlacedLaunch>> drawings;
  for (const KernelLaunch& launch : profiles.launches) {
    for (const RooflinePoint& point : analysis::RooflineOf(launch)) {
      if (!CanBeDrawn(point)) continue;
      drawings[{launch.device, point.precision}].push_back({&launch, point});
    }
  }
  std::string html = OpenPlainPage("Kernels", "What bounds the kernels", kStyle);
  if (drawings.empty()) {
    html += "<p>No launch has a place under a roofline: <code>ncu --set roofline</code> collects what is needed.</p>\n";
  }
  for (auto& [key, launches] : drawings) {
    const auto& [device, precision] = key;
    std::stable_sort(launches.begin(), launches.end(), [](const PlacedLaunch& a, const PlacedLaunch& b) {
      return a.launch->duration_ns.value_or(0) > b.launch->duration_ns.value_or(0);
    });
    const size_t count = launches.size();
    if (launches.size() > kPointLimit) launches.resize(kPointLimit);
    const std::string title =
        fmt::format("Roofline of {}, {}", device.empty() ? "the device" : device, analysis::PrecisionName(precision));
    html += fmt::format("<h2>{}</h2>\n", EscapeHtml(title));
    if (launches.front().point.approximate) {
      html += "<p class=\"faint\">About: how many operations an instruction does depends on the device.</p>\n";
    }
    if (count > launches.size())
      html += fmt::format("<p class=\"faint\">The {} longest of {} launches.</p>\n", launches.size(), count);
    html += RooflineDrawing(launches).Svg(title) + PointTable(launches);
  }
  std::ostringstream text;
  report::WriteKernelText(profiles, {.colour = false, .columns = 120, .unicode = true, .all = true}, text);
  html += "<h2>As text</h2>\n<details open><summary>The whole report</summary><pre tabindex=\"0\">";
  std::istringstream lines(text.str());
  for (std::string line; std::getline(lines, line);) html += EscapeHtml(line) + "\n";
  return html + "</pre></details>\n" + kClosePlainPage;
}

}  // namespace lockstep::page
