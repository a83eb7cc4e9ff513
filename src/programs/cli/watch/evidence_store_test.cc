#include "programs/cli/watch/evidence_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/bytes_below.h"
#include "base/temporary_folder.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

class EvidenceStoreTest : public testing::Test {
 protected:
  /// A capture of two traces, a page and a verdict: 1,000 bytes.
  std::string Capture(const std::string& name) {
    const fs::path folder = folder_.File(name);
    fs::create_directories(folder);
    for (const auto& [file, bytes] : {std::pair{"rank-0.json.gz", 400}, std::pair{"rank-1.json.gz", 400},
                                      std::pair{"report.html", 150}, std::pair{EvidenceStore::kVerdictFile, 50}}) {
      std::ofstream(folder / file) << std::string(static_cast<size_t>(bytes), 'x');
    }
    return folder.string();
  }

  TemporaryFolder folder_;
};

TEST_F(EvidenceStoreTest, TheOldestGoFirstAndVerdictsStay) {
  EvidenceStore store(2'000);
  const std::string first = Capture("1");
  const std::string second = Capture("2");
  const std::string third = Capture("3");
  EXPECT_TRUE(store.Keep(first));
  EXPECT_TRUE(store.Keep(second));
  EXPECT_EQ(BytesBelow(first), 1'000u);
  EXPECT_TRUE(store.Keep(third));
  EXPECT_EQ(BytesBelow(first), 50u);
  EXPECT_TRUE(fs::exists(fs::path(first) / EvidenceStore::kVerdictFile));
  EXPECT_EQ(BytesBelow(second), 1'000u);
  EXPECT_EQ(BytesBelow(third), 1'000u);
}

TEST_F(EvidenceStoreTest, OfOneBeyondTheBudgetTheVerdictAloneStays) {
  EvidenceStore store(999);
  const std::string only = Capture("1");
  EXPECT_FALSE(store.Keep(only));
  EXPECT_EQ(BytesBelow(only), 50u);
}

TEST_F(EvidenceStoreTest, AFolderWithoutAVerdictGoesWhole) {
  EvidenceStore store(1'500);
  const std::string first = Capture("1");
  fs::remove(fs::path(first) / EvidenceStore::kVerdictFile);
  EXPECT_TRUE(store.Keep(first));
  EXPECT_TRUE(store.Keep(Capture("2")));
  EXPECT_FALSE(fs::exists(first));
}

TEST_F(EvidenceStoreTest, AFolderThatIsGoneIsNoError) {
  EvidenceStore store(0);
  EXPECT_TRUE(store.Keep(folder_.File("no-such")));
}

}  // namespace
}  // namespace lockstep::cli
