#include "present/report/style.h"

namespace lockstep::report {
namespace {

const char* Escape(Paint paint) {
  switch (paint) {
    case Paint::kPlain: return "";
    case Paint::kStrong: return "\x1b[1m";
    case Paint::kFaint: return "\x1b[2m";
    case Paint::kBad: return "\x1b[1;31m";
    case Paint::kWarn: return "\x1b[33m";
    case Paint::kGood: return "\x1b[32m";
    case Paint::kCompute: return "\x1b[32m";
    case Paint::kCommunication: return "\x1b[31m";
    case Paint::kMemory: return "\x1b[34m";
    case Paint::kIdle: return "\x1b[2m";
  }
  return "";
}

}  // namespace

std::string Style::operator()(Paint paint, std::string_view text) const {
  if (!colour || paint == Paint::kPlain || text.empty()) return std::string(text);
  return std::string(Escape(paint)) + std::string(text) + "\x1b[0m";
}

}  // namespace lockstep::report
