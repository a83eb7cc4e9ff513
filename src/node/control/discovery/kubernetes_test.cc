#include "node/control/discovery/kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "node/control/discovery/recorded_data.h"

namespace lockstep::control {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Pod(const std::string& name, const std::string& node, const std::string& labels,
                const std::string& container = R"({"name": "pytorch"})", const std::string& phase = "Running") {
  return R"({"kind": "Pod", "metadata": {"name": ")" + name + R"(", "labels": {)" + labels +
         R"(}}, "spec": {"nodeName": ")" + node + R"(", "containers": [)" + container + R"(]}, "status": {"phase": ")" +
         phase + R"(", "hostIP": "192.0.2.)" + node.substr(node.size() - 1) + R"(", "podIP": "10.0.0.)" +
         name.substr(name.size() - 1) + R"("}})";
}

std::string List(const std::string& pods) { return R"({"kind": "List", "items": [)" + pods + "]}"; }

TEST(KubernetesTest, PytorchJobsPodsAreReachedThroughTheirMachines) {
  const auto json = recorded::File("kubernetes/constructed-pytorchjob-v1-pods.json");
  if (!json) GTEST_SKIP() << "recorded scheduler outputs are absent; set LOCKSTEP_DATA";
  const auto job = SelectPods("llm-pretrain", *json);
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ(job->kind, JobKind::kKubernetes);
  EXPECT_EQ(job->job_id, "llm-pretrain");
  ASSERT_EQ(job->nodes.size(), 2u);  // The third pod is pending.
  EXPECT_EQ(job->nodes[0].host, "gpu-node-a");
  EXPECT_EQ(job->nodes[0].address, "192.0.2.11");
  EXPECT_THAT(job->nodes[0].ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(job->nodes[1].ranks, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(KubernetesTest, PodsOfOneMachineAreOneNode) {
  const auto job = SelectPods(
      "j", List(Pod("p-0", "node-a1", "") + "," + Pod("p-1", "node-a1", "") + "," + Pod("p-2", "node-b2", "")));
  ASSERT_TRUE(job) << job.error().ToString();
  ASSERT_EQ(job->nodes.size(), 2u);
  EXPECT_EQ(job->nodes[0].host, "node-a1");
  EXPECT_EQ(job->nodes[1].address, "192.0.2.2");
}

TEST(KubernetesTest, PodsThatShareNoJobsNameLeaveItOpen) {
  const auto one = SelectPods("x", List(Pod("a-node-0-0-7lbsc1", "node-a1", "")));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->job_id, "a");
  const auto several = SelectPods("x", List(Pod("a-0", "node-a1", "") + "," + Pod("a-1", "node-b2", "")));
  ASSERT_TRUE(several);
  EXPECT_EQ(several->job_id, "");
}

TEST(KubernetesTest, PodWithASidecarIsANode) {
  const std::string sidecar = R"({"name": "pytorch"}, {"name": "lockstepd"})";
  const auto job = SelectPods("j", List(Pod("p-0", "node-a1", "", sidecar) + "," + Pod("p-1", "node-a1", "", sidecar)));
  ASSERT_TRUE(job);
  ASSERT_EQ(job->nodes.size(), 2u);
  EXPECT_EQ(job->nodes[1].host, "p-1");
  EXPECT_EQ(job->nodes[1].address, "10.0.0.1");
}

TEST(KubernetesTest, ElasticJobsRanksAreLeftToTheProcesses) {
  const std::string container = R"({"name": "pytorch", "env": [{"name": "PET_NPROC_PER_NODE", "value": "2"}]})";
  const std::string worker =
      R"("training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1")";
  const auto elastic = SelectPods("j", Pod("p-1", "node-a1", worker, container));
  ASSERT_TRUE(elastic);
  EXPECT_THAT(elastic->nodes[0].ranks, IsEmpty());
  const auto indexed =
      SelectPods("j", Pod("p-1", "node-a1", R"("batch.kubernetes.io/job-completion-index": "10")", container));
  ASSERT_TRUE(indexed);
  EXPECT_THAT(indexed->nodes[0].ranks, ElementsAre(20, 21));
}

TEST(KubernetesTest, PodsThatDoNotRunAreNotFound) {
  const auto job = SelectPods("j", List(Pod("p-0", "node-a1", "", "{}", "Succeeded")));
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(job.error().message, HasSubstr("Succeeded"));
  const auto none = SelectPods("j", List(""));
  ASSERT_TRUE(none);
  EXPECT_THAT(none->nodes, IsEmpty());
}

TEST(KubernetesTest, DamagedAnswersAreErrorsOrNoPods) {
  EXPECT_EQ(SelectPods("j", "").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(SelectPods("j", "{\"items\": [").error().code, ErrorCode::kCorruptData);
  EXPECT_TRUE(SelectPods("j", "[]"));
  EXPECT_EQ(SelectPods("j", R"({"items": [7, {}, {"spec": [], "status": {"phase": 7}}]})").error().code,
            ErrorCode::kNotFound);
  EXPECT_FALSE(SelectPods("j", List(R"({"spec": {"containers": [7, {"env": [7, {"name": 7}]}]}})")));
}

TEST(KubernetesTest, SelectorsNameTheOperatorsLabels) {
  EXPECT_THAT(JobSelectors("a"), Contains("training.kubeflow.org/job-name=a"));
  EXPECT_THAT(JobSelectors("a"), Contains("jobset.sigs.k8s.io/jobset-name=a"));
}

TEST(KubernetesTest, RefusesWhatIsNoName) {
  for (const char* name : {"", "-n", "ns/-x", "/x", "a b", "a;b", "ns/"}) {
    const Status status = CheckPodsName(name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  for (const char* name : {"job", "ml/llm-pretrain", "ray.io/cluster=a,x=y", "ml/app=train"}) {
    EXPECT_TRUE(CheckPodsName(name)) << name;
  }
}

}  // namespace
}  // namespace lockstep::control
