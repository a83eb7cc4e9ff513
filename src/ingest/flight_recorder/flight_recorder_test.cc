#include "ingest/flight_recorder/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace lockstep::ingest {
namespace {

using evidence::FlightRecord;
using ::testing::ElementsAre;

std::string Bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::vector<std::filesystem::path> SharedDumps() {
  const char* data = std::getenv("LOCKSTEP_DATA");
  const std::filesystem::path root =
      data != nullptr ? data : std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "../shared/data";
  std::vector<std::filesystem::path> dumps;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root / "flight_recorder", error)) {
    const std::string name = file.path().filename();
    if (name.starts_with("trace_") || name.starts_with("_dump_")) dumps.push_back(file.path());
  }
  return dumps;
}

TEST(SharedDumpsTest, AllAreReadWhole) {
  const auto dumps = SharedDumps();
  if (dumps.empty()) GTEST_SKIP() << "the shared data are absent";
  for (const auto& path : dumps) {
    SCOPED_TRACE(path.string());
    const std::string bytes = Bytes(path);
    EXPECT_EQ(SniffFlightRecord(std::string_view(bytes).substr(0, 4096)),
              path.extension() == ".json" ? FlightFormat::kJson : FlightFormat::kPickle);
    const auto record = ReadFlightRecord(bytes);
    ASSERT_TRUE(record.has_value()) << record.error().ToString();
    EXPECT_FALSE(record->truncated);
    EXPECT_THAT(record->notes, ElementsAre());
    EXPECT_FALSE(record->groups.empty());
  }
}

}  // namespace
}  // namespace lockstep::ingest
