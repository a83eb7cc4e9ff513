#include "node/control/api/capture_risk.h"

#include <gmock/gmock.h>

namespace lockstep::control {
namespace {

std::string RiskOf(const std::string& version, Tracer tracer) {
  Process process;
  process.torch_version = version;
  process.tracer = tracer;
  return CaptureRisk(process);
}

TEST(CaptureRiskTest, KinetoBeforeItsMendingIsARisk) {
  for (const char* version :
       {"2.13.0+cpu", "2.0.1", "1.13.1", "2.9.0a0+git12", "2.14.0a0+git12", "2.14.0.dev20260401+cpu", "2.14x"})
    EXPECT_THAT(RiskOf(version, Tracer::kKineto), testing::HasSubstr(version)) << version;
  EXPECT_THAT(RiskOf("", Tracer::kKineto), testing::HasSubstr("unknown version"));
  EXPECT_THAT(RiskOf("nightly", Tracer::kKineto), testing::HasSubstr("nightly"));
}

TEST(CaptureRiskTest, LaterKinetosAndTheStepTracerAreNone) {
  for (const char* version : {"2.14.0", "2.14.1+cpu", "2.15.0+cu130", "2.15.0a0+git12", "3.0"})
    EXPECT_EQ(RiskOf(version, Tracer::kKineto), "") << version;
  EXPECT_EQ(RiskOf("2.6.0", Tracer::kSteps), "");
}

}  // namespace
}  // namespace lockstep::control
