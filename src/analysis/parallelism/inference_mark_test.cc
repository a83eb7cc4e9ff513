#include "analysis/parallelism/inference_mark.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::analysis {
namespace {

struct Case {
  const char* name;
  InferenceEngine engine;
  InferencePhase phase;
  std::optional<int64_t> requests;
  std::optional<int64_t> tokens;
};

class InferenceMarkTest : public ::testing::TestWithParam<Case> {};

TEST_P(InferenceMarkTest, NameSaysPhaseAndBatch) {
  const Case& wanted = GetParam();
  const auto mark = ParseInferenceMark(wanted.name);
  ASSERT_TRUE(mark);
  EXPECT_STREQ(InferenceEngineName(mark->engine), InferenceEngineName(wanted.engine));
  EXPECT_STREQ(InferencePhaseName(mark->phase), InferencePhaseName(wanted.phase));
  EXPECT_EQ(mark->request_count, wanted.requests);
  EXPECT_EQ(mark->token_count, wanted.tokens);
}

using Engine = InferenceEngine;
using Phase = InferencePhase;
constexpr auto kNone = std::nullopt;

INSTANTIATE_TEST_SUITE_P(
    Names, InferenceMarkTest,
    ::testing::Values(
        Case{"execute_context_1(888_788544)_generation_0(0)", Engine::kVllm, Phase::kPrefill, 1, 888},  // recorded
        Case{"execute_context_0(0)_generation_64(64)", Engine::kVllm, Phase::kDecode, 64, 64},
        Case{"execute_context_2(512)_generation_30(60)", Engine::kVllm, Phase::kMixed, 32, 572},
        Case{"context_1(sq7sk9sqsq49sqsk63)_generation_1(sq1sk5)", Engine::kVllm, Phase::kMixed, 2, 8},
        Case{"execute_new_2_cached_0", Engine::kVllm, Phase::kPrefill, 2, kNone},
        Case{"execute_new_0_cached_5", Engine::kVllm, Phase::kMixed, 5, kNone},
        Case{"step[EXTEND bs=2 toks=4096]", Engine::kSglang, Phase::kPrefill, 2, 4096},
        Case{"step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", Engine::kSglang, Phase::kPrefill, 2, 12},
        Case{"step[DECODE bs=16]", Engine::kSglang, Phase::kDecode, 16, 16},
        Case{"step[MIXED bs=3]", Engine::kSglang, Phase::kMixed, 3, kNone},
        Case{"step[MIXED bs=3 c=1 g=2 c_sq=5 c_sk=8 g_sq=2 g_sk=20]", Engine::kSglang, Phase::kMixed, 3, 7},
        Case{"step[TARGET_VERIFY bs=4]", Engine::kSglang, Phase::kDecode, 4, kNone},
        Case{"[Executor] _forward_step 12: 1 ctx reqs, 3 gen reqs", Engine::kTensorRtLlm, Phase::kMixed, 4, kNone},
        Case{"[Executor] _forward_step: 0 ctx reqs, 64 gen reqs", Engine::kTensorRtLlm, Phase::kDecode, 64, kNone},
        Case{"[Executor] _forward_step 3: 2 ctx reqs, 900 ctx tokens, 0 gen reqs", Engine::kTensorRtLlm,
             Phase::kPrefill, 2, 900},
        Case{"executeStep: 2 ctx reqs, 0 gen reqs", Engine::kTensorRtLlm, Phase::kPrefill, 2, kNone},
        Case{"prefill", Engine::kPlain, Phase::kPrefill, kNone, kNone},
        Case{"prefill[bs=2 tok=16384]", Engine::kPlain, Phase::kPrefill, 2, 16384},
        Case{"Decode step 3", Engine::kPlain, Phase::kDecode, kNone, kNone},
        Case{"decode_step_3 (batch=8, tokens=8)", Engine::kPlain, Phase::kDecode, 8, 8},
        Case{"model.step.tp0.decode", Engine::kPlain, Phase::kDecode, kNone, kNone},
        Case{"PREFILL+DECODE_generate_256", Engine::kPlain, Phase::kMixed, kNone, kNone}));

TEST(InferenceMarkTest, OtherNamesMarkNothing) {
  for (const char* name : {"",
                           "ProfilerStep#3",
                           "gpu_model_runner: forward",
                           "decoder",
                           "TransformerDecoderLayer",
                           "prefilled",
                           "autodecode",
                           "execute_context_0(0)_generation_0(0)",
                           "execute_context_1",
                           "execute_context_1(",
                           "execute_context_1(5",
                           "execute_context_1(5)_generation_",
                           "execute_context_-1(5)_generation_1(1)",
                           "execute_new_0_cached_0",
                           "execute_new_1_cached_",
                           "execute_model",
                           "step[IDLE bs=0]",
                           "step[DECODE bs=]",
                           "step[DECODE bs=0]",
                           "step[DRAFT_EXTEND bs=4]",
                           "step[",
                           "_forward_step 3",
                           "[Executor] _forward_step 3: 0 ctx reqs, 0 gen reqs",
                           "execute_context_99999999999999999999(1)_generation_0(0)"}) {
    EXPECT_FALSE(ParseInferenceMark(name)) << name;
  }
  EXPECT_FALSE(ParseInferenceMark(std::string(100'000, 'x') + " prefill"));
}

TEST(InferenceMarkTest, VerifyingGuessesIsSpeculative) {
  EXPECT_TRUE(ParseInferenceMark("step[TARGET_VERIFY bs=4]")->speculative);
  EXPECT_FALSE(ParseInferenceMark("step[DECODE bs=4]")->speculative);
}

TEST(InferenceMarkTest, RequestsHaveAnIdWithADigit) {
  for (const char* name : {"request 17", "request_cmpl-4f", "Request: 3", "req#9", "request-00a1.b2"}) {
    EXPECT_TRUE(IsRequestMark(name)) << name;
  }
  for (const char* name : {"request", "request ", "request wait", "## Request wait() ##", "requests 3", "required 7",
                           "request 3 of 8", "my request 3"}) {
    EXPECT_FALSE(IsRequestMark(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::analysis
