#include "ingest/torch_trace/operator_shape.h"

#include <gtest/gtest.h>

#include <string>

#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {
namespace {

std::string Operator(const std::string& name, int start_us, const std::string& args) {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","pid":1,"tid":7,"ts":)" + std::to_string(start_us) +
         R"(,"dur":5,"args":{)" + args + "}}";
}

Result<TraceContent> ReadEvents(const std::string& events, bool learned_templates) {
  auto source = OpenMemory("{\"traceEvents\":[" + events + "]}", {});
  if (!source) return source.error();
  TraceReaderOptions options;
  options.learned_templates = learned_templates;
  return ReadTrace(**source, "test.json", options);
}

constexpr const char* kShapes =
    R"("External id":3,"Input Dims":[[2, 3],[3, 4]],"Input type":["float","float"],"Concrete Inputs":["",""])";

TEST(OperatorShapeTest, ShapesOfMatrixOperatorsAreKeptWithoutWhiteSpace) {
  for (const bool learned : {false, true}) {
    std::string events;
    for (int i = 0; i < 50; ++i) {
      events += Operator("aten::add", 20 * i, kShapes) + "," + Operator("aten::mm", 20 * i + 10, kShapes) + ",";
    }
    const auto content = ReadEvents(events + Operator("aten::bmm", 2000, kShapes), learned);
    ASSERT_TRUE(content);
    ASSERT_EQ(content->trace.shapes.size(), 51u);
    const model::OperatorShape& shape = content->trace.shapes[49];
    EXPECT_EQ(content->names[shape.name], "aten::mm");
    EXPECT_EQ(content->names[shape.dims], "[[2,3],[3,4]]");
    EXPECT_EQ(content->names[shape.types], R"(["float","float"])");
    EXPECT_EQ(content->names[shape.values], "");  // No figure of a product needs them.
    EXPECT_EQ(shape.start_ns, 990'000);
    EXPECT_EQ(shape.duration_ns, 5'000);
    EXPECT_EQ(shape.thread_id, 7);
  }
}

TEST(OperatorShapeTest, AFileWithoutShapesHasNone) {
  for (const bool learned : {false, true}) {
    std::string events;
    for (int i = 0; i < 50; ++i) events += (i > 0 ? "," : "") + Operator("aten::mm", 20 * i, R"("External id":3)");
    const auto content = ReadEvents(events, learned);
    ASSERT_TRUE(content);
    EXPECT_TRUE(content->trace.shapes.empty());
    EXPECT_EQ(content->trace.complete_event_count, 50u);
  }
}

TEST(OperatorShapeTest, OperatorsThatOnlyCallAnotherAreNotMatrixOperators) {
  EXPECT_TRUE(IsMatrixOperator("aten::addmm"));
  EXPECT_TRUE(IsMatrixOperator("aten::convolution"));
  EXPECT_FALSE(IsMatrixOperator("aten::linear"));
  EXPECT_FALSE(IsMatrixOperator("aten::matmul"));
  EXPECT_FALSE(IsMatrixOperator("aten::mm_other"));
}

}  // namespace
}  // namespace lockstep::ingest
