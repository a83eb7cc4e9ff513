#include "present/export/flame/flame.h"

#include <gmock/gmock.h>

#include <sstream>

namespace lockstep::flame {
namespace {

using model::Category;
using model::Lane;
using testing::HasSubstr;

/// One rank whose thread 1 is made event by event, with a stream 7.
class FlameTest : public testing::Test {
 protected:
  FlameTest() {
    run_.ranks.emplace_back();
    for (const Lane lane : {Lane::kOperators, Lane::kPython, Lane::kRuntime, Lane::kDevice}) {
      model::Track& track = run_.ranks[0].tracks.emplace_back();
      track.lane = lane;
      track.process_id = lane == Lane::kDevice ? 0 : 100;
      track.thread_id = lane == Lane::kDevice ? 7 : 1;
    }
    run_.ranks[0].first_ns = 0;
  }

  // Events of a lane are added in order of start.
  void Add(Lane lane, const char* name, int64_t start_ns, int64_t duration_ns, uint32_t correlation = 0) {
    for (model::Track& track : run_.ranks[0].tracks) {
      if (track.lane != lane) continue;
      track.events.start_ns.push_back(start_ns);
      track.events.duration_ns.push_back(duration_ns);
      track.events.name.push_back(run_.names.Intern(name));
      track.events.category.push_back(lane == Lane::kOperators ? Category::kCpuOp
                                      : lane == Lane::kPython  ? Category::kPythonFunction
                                      : lane == Lane::kRuntime ? Category::kRuntime
                                                               : Category::kKernel);
      if (lane == Lane::kRuntime || lane == Lane::kDevice) track.events.correlation.push_back(correlation);
    }
  }
  std::string Collapsed(const Options& options = {}) {
    std::ostringstream out;
    const Status status = WriteCollapsed(run_, {}, options, out);
    return status ? out.str() : "error: " + status.error().message;
  }
  std::string Speedscope(const Options& options = {}) {
    std::ostringstream out;
    const Status status = WriteSpeedscope(run_, {}, options, out);
    return status ? out.str() : "error: " + status.error().message;
  }

  model::Run run_;
};

TEST_F(FlameTest, LanesOfAThreadNestByTimeAndWeightsAreOwnTime) {
  Add(Lane::kPython, "train.py(3): step", 0, 100);
  Add(Lane::kOperators, "aten::linear", 10, 50);
  Add(Lane::kOperators, "aten::addmm", 20, 30);
  Add(Lane::kRuntime, "cudaLaunchKernel", 30, 5, 1);
  EXPECT_EQ(Collapsed(),
            "train.py(3): step 50\n"
            "train.py(3): step;aten::linear 20\n"
            "train.py(3): step;aten::linear;aten::addmm 25\n"
            "train.py(3): step;aten::linear;aten::addmm;cudaLaunchKernel 5\n");
}

TEST_F(FlameTest, OfFramesThatBeginTogetherTheLongerIsOutsideWhateverItsLane) {
  Add(Lane::kPython, "inner.py(1): f", 0, 10);
  Add(Lane::kOperators, "outer", 0, 20);
  EXPECT_EQ(Collapsed(), "outer 10\nouter;inner.py(1): f 10\n");
}

TEST_F(FlameTest, AFrameThatOutlivesTheOneAroundItIsCut) {
  Add(Lane::kOperators, "outer", 0, 10);
  Add(Lane::kOperators, "inner", 5, 100);
  Add(Lane::kOperators, "next", 10, 5);
  EXPECT_EQ(Collapsed(), "next 5\nouter 5\nouter;inner 5\n");
}

TEST_F(FlameTest, CollectivesThatEndOnOtherThreadsAreInNoStack) {
  Add(Lane::kOperators, "gloo:all_reduce", 0, 1000);
  Add(Lane::kOperators, "aten::mul", 10, 5);
  EXPECT_EQ(Collapsed(), "aten::mul 5\n");
}

TEST_F(FlameTest, NamesCannotBreakTheFormat) {
  Add(Lane::kOperators, "a;b\nc", 0, 5);
  EXPECT_EQ(Collapsed(), "a:b?c 5\n");
  EXPECT_THAT(Speedscope(), HasSubstr(R"({"name":"a;b\nc"})"));
}

TEST_F(FlameTest, DeviceTimeGoesToTheStackThatLaunchedIt) {
  Add(Lane::kOperators, "aten::mm", 0, 10);
  Add(Lane::kRuntime, "cudaLaunchKernel", 2, 3, 1);
  Add(Lane::kDevice, "gemm", 50, 400, 1);
  Add(Lane::kDevice, "stray", 500, 7, 99);
  Options options;
  options.by = By::kDevice;
  EXPECT_EQ(Collapsed(options), "(no launch in the file);stray 7\naten::mm;gemm 400\n");
  EXPECT_THAT(Speedscope(options), HasSubstr(R"("samples":[[0,1]],"weights":[400])"));
}

TEST_F(FlameTest, StepsSelectTimeAndCutFrames) {
  Add(Lane::kOperators, "ProfilerStep#1", 0, 100);
  Add(Lane::kOperators, "aten::mul", 50, 200);  // cut by the step
  Add(Lane::kOperators, "ProfilerStep#2", 100, 100);
  Options options;
  options.steps = {{1, 1}};
  EXPECT_EQ(Collapsed(options), "ProfilerStep 50\nProfilerStep;aten::mul 50\n");
  options.steps = {{3, 9}};
  EXPECT_THAT(Collapsed(options), HasSubstr("error: --steps"));
  options.steps.clear();
  options.ranks = {{1, 5}};
  EXPECT_THAT(Collapsed(options), HasSubstr("error: --ranks"));
}

TEST_F(FlameTest, SpeedscopeOpensAndClosesInOrderAndKnowsPythonFiles) {
  Add(Lane::kPython, "lib/train.py(42): step", 100, 50);
  Add(Lane::kOperators, "aten::mul", 110, 10);
  run_.ranks[0].first_ns = 100;
  Options options;
  options.exporter = "lockstep@1";
  EXPECT_EQ(Speedscope(options),
            R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"lockstep@1",)"
            R"("name":"host time by thread","profiles":[{"type":"evented","name":"rank 0, thread 1",)"
            R"("unit":"nanoseconds","startValue":0,"events":[{"type":"O","frame":0,"at":0},)"
            R"({"type":"O","frame":1,"at":10},{"type":"C","frame":1,"at":20},{"type":"C","frame":0,"at":50}],)"
            R"("endValue":50}],"shared":{"frames":[{"name":"step","file":"lib/train.py","line":42},)"
            R"({"name":"aten::mul"}]}})"
            "\n");
}

TEST_F(FlameTest, NumbersOfLinesAreNumbersInJson) {
  Add(Lane::kOperators, "odd.py(007): f", 0, 5);  // no number of JSON begins with 00
  EXPECT_THAT(Speedscope(), HasSubstr(R"("line":7)"));
}

}  // namespace
}  // namespace lockstep::flame
