#include "ingest/nccl/topology.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace lockstep::ingest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Gpu(int idx, int width = 16, int nvlinks = 12, int gdr = 1) {
  const std::string dev = std::to_string(idx);
  return R"(<pci busid="0000:0)" + dev + R"(:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width=")" +
         std::to_string(width) + R"("><gpu dev=")" + dev + R"(" sm="90" rank=")" + dev + R"(" gdr=")" +
         std::to_string(gdr) + R"("><nvlink target="0000:ff:00.0" count=")" + std::to_string(nvlinks) +
         R"(" tclass="0x068000"/></gpu></pci>)" + "\n";
}

std::string Nic(int idx, int speed = 400000) {
  const std::string dev = std::to_string(idx);
  return R"(<pci busid="0000:1)" + dev + R"(:00.0" class="0x020000" link_width="16"><nic><net name="mlx5_)" + dev +
         R"(" dev=")" + dev + R"(" speed=")" + std::to_string(speed) + R"(" gdr="1"/></nic></pci>)" + "\n";
}

std::string Switch(const std::string& inner) {
  return "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\">\n" + inner + "</pci>\n";
}

std::string System(const std::string& inner) {
  return "<!-- a comment -->\n<system version=\"1\">\n<cpu numaid=\"0\">\n" + inner + "</cpu>\n</system>\n";
}

std::vector<evidence::NcclLogFinding> Check(const std::string& text) {
  auto topology = ReadNcclTopology(text, "topo.xml");
  EXPECT_TRUE(topology) << topology.error().ToString();
  return FindTopologyProblems({*topology});
}

TEST(NcclTopologyTest, ASoundMachineHasNoProblems) {
  const std::string text = System(Switch(Gpu(0) + Nic(0)) + Switch(Gpu(1) + Nic(1)));
  EXPECT_TRUE(LooksLikeNcclTopology(text));
  EXPECT_THAT(Check(text), IsEmpty());
}

TEST(NcclTopologyTest, NodesKeepTheirLinesAndNames) {
  const auto topology = ReadNcclTopology(System(Switch(Gpu(0) + Nic(0))), "topo.xml");
  ASSERT_TRUE(topology);
  const auto gpu = std::find_if(topology->nodes.begin(), topology->nodes.end(),
                                [](const auto& node) { return evidence::IsGpuDevice(node); });
  ASSERT_NE(gpu, topology->nodes.end());
  EXPECT_EQ(gpu->line, 5);
  EXPECT_EQ(evidence::TopologyNodeName(*topology, static_cast<int32_t>(gpu - topology->nodes.begin())), "GPU 0");
}

TEST(NcclTopologyTest, DegradedLinksAreComparedWithSiblings) {
  auto findings = Check(System(Switch(Gpu(0) + Nic(0)) + Switch(Gpu(1, 8) + Nic(1))));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "narrow_link");
  EXPECT_THAT(findings[0].text, HasSubstr("GPU 1: 8 lanes, others of the kind have 16"));
  findings = Check(System(Switch(Gpu(0, 16, 10) + Nic(0)) + Switch(Gpu(1) + Nic(1))));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "fewer_nvlinks");
  findings = Check(System(Switch(Gpu(0) + Nic(0, 100000)) + Switch(Gpu(1) + Nic(1))));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "slow_adapter");
  findings = Check(System(Switch(Gpu(0, 16, 12, 0) + Nic(0)) + Switch(Gpu(1) + Nic(1))));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "gpu_direct_off");
}

TEST(NcclTopologyTest, AGpuFarFromEveryAdapterIsTold) {
  const auto findings = Check(System(Switch(Gpu(0) + Nic(0)) + Switch(Gpu(1))));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "nic_far");
  EXPECT_THAT(findings[0].text, HasSubstr("GPU 1"));
}

TEST(NcclTopologyTest, MachinesThatDifferBeyondAddressesAreTold) {
  const auto one = ReadNcclTopology(System(Switch(Gpu(0) + Nic(0))), "a.xml");
  const auto same = ReadNcclTopology(System(Switch(Gpu(1) + Nic(0))), "b.xml");
  const auto other = ReadNcclTopology(System(Switch(Gpu(0) + Gpu(1) + Nic(0))), "c.xml");
  ASSERT_TRUE(one && same && other);
  EXPECT_THAT(FindTopologyProblems({*one, *same}), IsEmpty());
  const auto findings = FindTopologyProblems({*one, *same, *other});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].kind, "topology_mismatch");
  EXPECT_EQ(findings[0].file, "c.xml");
}

TEST(NcclTopologyTest, DamagedAndHostileFilesAreRefused) {
  EXPECT_EQ(ReadNcclTopology("<system><cpu></system>", "x").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(ReadNcclTopology("", "x").error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(ReadNcclTopology("<html/>", "x").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ReadNcclTopology("<!DOCTYPE system [<!ENTITY a \"aaaa\">]><system>&a;</system>", "x").error().code,
            ErrorCode::kUnsupported);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<system>";
  EXPECT_EQ(ReadNcclTopology(deep, "x").error().code, ErrorCode::kLimitExceeded);
}

TEST(NcclTopologyTest, GraphsHaveChannelsInTheOrderOfTheRing) {
  const auto graphs = ReadNcclGraphs(
      R"(<graphs version="1"><graph id="0" pattern="4" nchannels="1" speedintra="12" speedinter="12" typeintra="SYS"
      typeinter="PIX"><channel><net dev="0"/><gpu dev="1"/><gpu dev="0"/><net dev="0"/></channel></graph></graphs>)",
      "g.xml");
  ASSERT_TRUE(graphs);
  ASSERT_THAT(graphs->graphs, SizeIs(1));
  EXPECT_EQ(graphs->graphs[0].type_intra, "SYS");
  EXPECT_THAT(graphs->graphs[0].channels.at(0), testing::ElementsAre("net 0", "gpu 1", "gpu 0", "net 0"));
}

}  // namespace
}  // namespace lockstep::ingest
