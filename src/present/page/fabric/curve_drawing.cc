#include "present/page/fabric/curve_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "present/page/html.h"
#include "present/report/format.h"

namespace lockstep::page {
namespace {

using model::FabricPoint;

constexpr int kWidth = 900, kHeight = 420, kLeft = 92, kRight = 24, kTop = 14, kBottom = 44, kKeyRow = 22,
              kKeyColumns = 4;
constexpr size_t kColours = 6;

/// Centred on (0, 0), about 9 px: six shapes for six colours, and the seventh curve has the first's colour alone.
constexpr std::array<const char*, kColours> kShapes = {"M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
                                                       "M-4-4h8v8h-8Z",
                                                       "M0-5.2L5 4H-5Z",
                                                       "M0-5.6L5.6 0L0 5.6L-5.6 0Z",
                                                       "M0 5.2L5-4H-5Z",
                                                       "M-5-1.7h3.3V-5h3.4v3.3H5v3.4H1.7V5h-3.4V1.7H-5Z"};
const char* Shape(size_t at) { return kShapes[(at + at / kColours) % kColours]; }

/// A value and the two it lies between.
struct Spread {
  double middle = 0, low = 0, high = 0;
};

std::optional<Spread> Of(const FabricPoint& point, CurveQuantity quantity) {
  const double slowest = point.slowest_busbw_bytes_per_s.value_or(point.busbw_bytes_per_s);
  const double fastest = point.fastest_busbw_bytes_per_s.value_or(point.busbw_bytes_per_s);
  if (quantity == CurveQuantity::kBusBandwidth) return Spread{point.busbw_bytes_per_s, slowest, fastest};
  if (!point.mean_ns) return std::nullopt;
  // Time and bandwidth of the same bytes are each other's inverse.
  return Spread{*point.mean_ns, *point.mean_ns * point.busbw_bytes_per_s / fastest,
                *point.mean_ns * point.busbw_bytes_per_s / slowest};
}

/// Within what networks may be said to do: a drawing of a hundred decades shows nothing.
bool CanBeDrawn(const Spread& spread) { return spread.low >= 1e-3 && spread.high <= 1e19; }

class Drawing {
 public:
  Drawing(const std::vector<FabricCurve>& curves, CurveQuantity quantity) : curves_(curves), quantity_(quantity) {
    double least = INFINITY, most = 0;
    const auto take = [&](const FabricPoint& point, double low, double high) {
      least = std::min(least, low);
      most = std::max(most, high);
      x_low_ = std::min(x_low_, std::log2(static_cast<double>(point.bytes)) - 0.7);
      x_high_ = std::max(x_high_, std::log2(static_cast<double>(point.bytes)) + 0.7);
    };
    for (const FabricCurve& curve : curves) {
      for (const FabricPoint* point : curve.points) {
        const auto spread = Of(*point, quantity);
        if (!spread || !CanBeDrawn(*spread)) continue;
        has_points_ = true;
        take(*point, spread->low, spread->high);
      }
      for (const FabricPoint* point : curve.earlier) {
        const auto spread = Of(*point, quantity);
        if (spread && CanBeDrawn(*spread)) take(*point, spread->middle, spread->middle);
      }
    }
    if (!has_points_) return;
    y_low_ = std::log10(least / 1.4);
    y_high_ = std::log10(most * 1.4);
  }

  std::string Svg(const std::string& title) const {
    if (!has_points_) return {};
    const size_t key_rows = (curves_.size() + kKeyColumns - 1) / kKeyColumns;
    const size_t height = kHeight + key_rows * kKeyRow;
    std::string svg = fmt::format(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{2}, drawn\"><svg role=\"img\" width=\"{0}\" "
        "height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\"><title>{2}</title>\n",
        kWidth, height, EscapeHtml(title));
    svg += Axes();
    for (size_t i = 0; i < curves_.size(); ++i) svg += Earlier(i);
    for (size_t i = 0; i < curves_.size(); ++i) svg += Curve(i);
    for (size_t i = 0; i < curves_.size(); ++i) svg += Key(i);
    return svg + "</svg></div>\n";
  }

 private:
  double X(int64_t bytes) const { return XOfPower(std::log2(static_cast<double>(bytes))); }
  double XOfPower(double power) const {
    return kLeft + (power - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - (std::log10(value) - y_low_) / (y_high_ - y_low_) * (kHeight - kTop - kBottom);
  }
  std::string Text(double value) const {
    return quantity_ == CurveQuantity::kBusBandwidth ? report::FormatRate(value)
                                                     : report::FormatDuration(std::llround(value));
  }
  /// "100 MB/s" for "100 MB/s", "1 MB/s" for "1.00 MB/s": an axis has whole powers.
  std::string AxisText(double value) const {
    std::string text = Text(value);
    if (const size_t at = text.find('.'); at != std::string::npos) text.erase(at, text.find(' ', at) - at);
    return text;
  }

  std::string Axes() const {
    std::string svg;
    const int from = static_cast<int>(std::ceil(x_low_)), to = static_cast<int>(std::floor(x_high_));
    int stride = 1;
    while ((to - from) / stride > 12) stride *= 2;
    for (int power = from; power <= to; ++power) {
      if (power < 0 || power > 62 || power % stride != 0) continue;
      const std::string size = report::FormatBytes(int64_t{1} << power);
      const size_t point = size.find('.');
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"axis\" x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          XOfPower(power), kTop, kHeight - kBottom, kHeight - kBottom + 18,
          point == std::string::npos ? size : size.substr(0, point) + size.substr(size.find(' ')));
    }
    for (int decade = static_cast<int>(std::ceil(y_low_)); decade <= static_cast<int>(std::floor(y_high_)); ++decade) {
      const double value = std::pow(10, decade);
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text class=\"axis\" x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          kLeft, Y(value), kWidth - kRight, kLeft - 6, Y(value) + 4, AxisText(value));
    }
    return svg + fmt::format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">message size</text>\n",
                             (kLeft + kWidth - kRight) / 2, kHeight - 6);
  }

  std::string Curve(size_t i) const {
    std::string line, band, back, points;
    for (const FabricPoint* point : curves_[i].points) {
      const auto spread = Of(*point, quantity_);
      if (!spread || !CanBeDrawn(*spread)) continue;
      const double x = X(point->bytes);
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? 'M' : 'L', x, Y(spread->middle));
      band += fmt::format("{}{:.1f} {:.1f}", band.empty() ? 'M' : 'L', x, Y(spread->high));
      back.insert(0, fmt::format("L{:.1f} {:.1f}", x, Y(spread->low)));
      points += fmt::format(
          "<path class=\"point\" transform=\"translate({:.1f},{:.1f})\" d=\"{}\"><title>{} of {}: {}, ranks {} to "
          "{}</title></path>\n",
          x, Y(spread->middle), Shape(i), EscapeHtml(curves_[i].operation), report::FormatBytes(point->bytes),
          Text(spread->middle), Text(spread->low), Text(spread->high));
    }
    if (line.empty()) return {};
    return fmt::format(
        "<g class=\"series-{}\"><path class=\"band\" d=\"{}{}Z\"/><path class=\"curve\" d=\"{}\"/>\n{}</g>\n",
        i % kColours + 1, band, back, line, points);
  }

  std::string Earlier(size_t i) const {
    std::string line, points;
    for (const FabricPoint* point : curves_[i].earlier) {
      const auto spread = Of(*point, quantity_);
      if (!spread || !CanBeDrawn(*spread)) continue;
      const double x = X(point->bytes), y = Y(spread->middle);
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? 'M' : 'L', x, y);
      points += fmt::format(
          "<path class=\"earlier point\" transform=\"translate({:.1f},{:.1f}) scale(.8)\" d=\"{}\"><title>{} of {}, "
          "earlier: {}</title></path>\n",
          x, y, Shape(i), EscapeHtml(curves_[i].operation), report::FormatBytes(point->bytes), Text(spread->middle));
    }
    if (line.empty()) return {};
    return fmt::format("<g class=\"series-{}\"><path class=\"earlier curve\" d=\"{}\"/>\n{}</g>\n", i % kColours + 1,
                       line, points);
  }

  std::string Key(size_t i) const {
    const size_t x = kLeft + i % kKeyColumns * ((kWidth - kLeft) / kKeyColumns);
    const size_t y = kHeight + i / kKeyColumns * kKeyRow + 12;
    return fmt::format(
        "<g class=\"series-{}\"><path class=\"curve\" d=\"M{} {}h22\"/><path class=\"point\" "
        "transform=\"translate({},{})\" d=\"{}\"/></g><text x=\"{}\" y=\"{}\">{}</text>\n",
        i % kColours + 1, x, y, x + 11, y, Shape(i), x + 30, y + 4, EscapeHtml(curves_[i].operation));
  }

  const std::vector<FabricCurve>& curves_;
  CurveQuantity quantity_;
  bool has_points_ = false;
  double x_low_ = INFINITY, x_high_ = 0, y_low_ = 0, y_high_ = 1;
};

}  // namespace

std::vector<FabricCurve> CurvesOf(const model::Fabric& fabric, const model::Fabric* earlier) {
  std::vector<FabricCurve> curves;
  for (const FabricPoint& point : fabric.points) {
    if (curves.empty() || curves.back().operation != point.operation) curves.push_back({point.operation, {}, {}});
    curves.back().points.push_back(&point);
  }
  if (earlier == nullptr) return curves;
  for (const FabricPoint& point : earlier->points) {
    const auto curve = std::find_if(curves.begin(), curves.end(),
                                    [&point](const auto& one) { return one.operation == point.operation; });
    if (curve != curves.end()) curve->earlier.push_back(&point);
  }
  return curves;
}

std::string CurvesSvg(const std::vector<FabricCurve>& curves, CurveQuantity quantity, const std::string& title) {
  return Drawing(curves, quantity).Svg(title);
}

}  // namespace lockstep::page
