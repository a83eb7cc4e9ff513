#include "measure/rendezvous/job_place.h"

#include <gmock/gmock.h>

namespace lockstep::rendezvous {
namespace {

using launch::Environment;
using testing::HasSubstr;

TEST(JobPlaceTest, TorchrunsVariablesAreUnderstood) {
  const auto place = PlaceFromEnvironment(Environment(
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29400"}}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3u);
  EXPECT_EQ(place->world_size, 8u);
  EXPECT_EQ(place->address, "node0");
  EXPECT_EQ(place->listen_address, "node0");
  EXPECT_EQ(place->first_port, 29401) << "torchrun's own store listens at MASTER_PORT";
}

TEST(JobPlaceTest, SlurmsRanksNeedAnAddressAlone) {
  const auto place = PlaceFromEnvironment(Environment({{"SLURM_PROCID", "1"},
                                                       {"SLURM_NTASKS", "4"},
                                                       {"SLURM_STEP_ID", "0"},
                                                       {"MASTER_ADDR", "n1"},
                                                       {"LOCKSTEP_BENCH_LISTEN", "10.0.0.1"}}));
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->rank, 1u);
  EXPECT_EQ(place->world_size, 4u);
  EXPECT_EQ(place->first_port, 29501);
  EXPECT_EQ(place->listen_address, "10.0.0.1");
}

TEST(JobPlaceTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(PlaceFromEnvironment(Environment()).error().message, HasSubstr("RANK"));
  EXPECT_THAT(
      PlaceFromEnvironment(Environment({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})).error().message,
      HasSubstr("MASTER_ADDR"));
  for (const char* port : {"0", "65535", "x", "-1"}) {
    EXPECT_THAT(
        PlaceFromEnvironment(
            Environment(
                {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", port}}))
            .error()
            .message,
        HasSubstr("MASTER_PORT"))
        << port;
  }
}

TEST(JobPlaceTest, JobsDifferByWhatTheirRanksShare) {
  const auto job = [](const std::string& name, const std::string& value, const std::string& rank) {
    const std::map<std::string, std::string, std::less<>> variables = {
        {"RANK", rank}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "a"}, {name, value}};
    return PlaceFromEnvironment(Environment(variables))->job;
  };
  EXPECT_EQ(job("SLURM_JOB_ID", "7", "0"), job("SLURM_JOB_ID", "7", "1"));
  EXPECT_NE(job("SLURM_JOB_ID", "7", "0"), job("SLURM_JOB_ID", "8", "0"));
  EXPECT_NE(job("SLURM_JOB_ID", "7", "0"), job("SLURM_STEP_ID", "7", "0"));
  EXPECT_NE(job("LOCKSTEP_BENCH_TOKEN", "a", "0"), job("LOCKSTEP_BENCH_TOKEN", "b", "0"));
}

}  // namespace
}  // namespace lockstep::rendezvous
