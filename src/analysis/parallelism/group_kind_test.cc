#include "analysis/parallelism/group_kind.h"

#include <gtest/gtest.h>

namespace lockstep::analysis {
namespace {

TEST(GroupKindTest, MegatronDescriptionsSayTheirKind) {
  EXPECT_EQ(GroupKindOfText("DATA_PARALLEL_GROUP"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("DATA_PARALLEL_GROUP_WITH_CP"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("EXPERT_DATA_PARALLEL_GROUP"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("TENSOR_MODEL_PARALLEL_GROUP"), GroupKind::kTensor);
  EXPECT_EQ(GroupKindOfText("EXPERT_TENSOR_PARALLEL_GROUP"), GroupKind::kTensor);
  EXPECT_EQ(GroupKindOfText("PIPELINE_MODEL_PARALLEL_GROUP"), GroupKind::kPipeline);
  EXPECT_EQ(GroupKindOfText("EXPERT_MODEL_PARALLEL_GROUP"), GroupKind::kExpert);
  EXPECT_EQ(GroupKindOfText("CONTEXT_PARALLEL_GROUP"), GroupKind::kContext);
  EXPECT_EQ(GroupKindOfText("POSITION_EMBEDDING_GROUP"), GroupKind::kEmbedding);
  EXPECT_EQ(GroupKindOfText("MODEL_PARALLEL_GROUP"), GroupKind::kMixed);
  EXPECT_EQ(GroupKindOfText("TENSOR_AND_DATA_PARALLEL_GROUP"), GroupKind::kMixed);
  EXPECT_EQ(GroupKindOfText("TENSOR_AND_CONTEXT_PARALLEL_GROUP"), GroupKind::kMixed);
}

TEST(GroupKindTest, MeshAndServingNamesSayTheirKind) {
  EXPECT_EQ(GroupKindOfText("mesh_dp"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("mesh_dp_shard_cp"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("mesh_dp_shard_mod_ep"), GroupKind::kData);
  EXPECT_EQ(GroupKindOfText("mesh_tp"), GroupKind::kTensor);
  EXPECT_EQ(GroupKindOfText("mesh_pp"), GroupKind::kPipeline);
  EXPECT_EQ(GroupKindOfText("mesh_ep"), GroupKind::kExpert);
  EXPECT_EQ(GroupKindOfText("mesh_cp"), GroupKind::kContext);
  EXPECT_EQ(GroupKindOfText("tp:0"), GroupKind::kTensor);
  EXPECT_EQ(GroupKindOfText("pp:0"), GroupKind::kPipeline);
  EXPECT_EQ(GroupKindOfText("tensor_parallel"), GroupKind::kTensor);
  EXPECT_EQ(GroupKindOfText("world"), GroupKind::kWorld);
}

TEST(GroupKindTest, NamesThatSayNothingHaveNoKind) {
  for (const char* text : {"", "0", "71", "undefined", "default_pg", "mesh_dim_0", "mesh_default", "3f2a9c"}) {
    EXPECT_EQ(GroupKindOfText(text), std::nullopt) << text;
  }
}

TEST(GroupKindTest, AWordIsNotFoundInsideAnother) {
  EXPECT_EQ(GroupKindOfText("step"), std::nullopt);
  EXPECT_EQ(GroupKindOfText("app_http"), std::nullopt);
  EXPECT_EQ(GroupKindOfText("mpi"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::analysis
