#include "ingest/kernel_profile/metric_units.h"

#include <array>
#include <string>
#include <utility>

namespace lockstep::ingest {
namespace {

constexpr std::array<std::string_view, 9> kBases = {"second", "byte", "cycle",  "inst",   "hz",
                                                    "block",  "warp", "thread", "request"};
constexpr std::array<std::pair<std::string_view, double>, 5> kShort = {
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"%", 0.01}}};

double PrefixFactor(char prefix) {
  switch (prefix) {
    case 'n': return 1e-9;
    case 'u': return 1e-6;
    case 'm': return 1e-3;
    case 'K':
    case 'k': return 1e3;
    case 'M': return 1e6;
    case 'G': return 1e9;
    case 'T': return 1e12;
    default: return 0;
  }
}

double FactorOfPlain(std::string_view unit) {
  for (const auto& [name, factor] : kShort) {
    if (unit == name) return factor;
  }
  if (unit.size() > 1 && unit.back() == 's' && unit != "s") unit.remove_suffix(1);  // "seconds"
  for (const std::string_view base : kBases) {
    if (unit == base) return 1;
    if (unit.size() == base.size() + 1 && unit.substr(1) == base) {
      if (const double factor = PrefixFactor(unit.front()); factor > 0) return factor;
    }
  }
  return 1;
}

}  // namespace

double FactorOf(std::string_view unit) {
  const size_t slash = unit.find('/');
  if (slash == std::string_view::npos) return FactorOfPlain(unit);
  return FactorOfPlain(unit.substr(0, slash)) / FactorOfPlain(unit.substr(slash + 1));
}

}  // namespace lockstep::ingest
