#include "ingest/bytes/trace_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "ingest/bytes/archive_for_test.h"
#include "ingest/bytes/compress_for_test.h"
#include "ingest/bytes/unprivileged_for_test.h"

namespace lockstep::ingest {
namespace {

using test::Entry;
using test::Format;
using test::MakeArchive;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TraceFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("lockstep_files_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // Names of what is found, without the folder of the test.
  std::vector<std::string> Find(const std::vector<std::string>& paths) {
    files_.clear();
    ledger_ = {};
    auto found = FindTraceFiles(paths, {}, &ledger_);
    error_.reset();
    if (!found) {
      error_ = found.error();
      return {};
    }
    files_ = std::move(*found);
    std::vector<std::string> names;
    for (const TraceFile& file : files_) names.push_back(file.DisplayName().substr(folder_.string().size() + 1));
    return names;
  }
  std::vector<std::string> Codes() const {
    std::vector<std::string> codes;
    for (const auto& entry : ledger_.entries()) codes.push_back(entry.code);
    return codes;
  }
  static std::string ReadAll(Result<std::unique_ptr<ByteSource>> source) {
    if (!source) return "error: " + source.error().ToString();
    std::string bytes, window(1000, '\0');
    while (true) {
      auto got = (*source)->Read(window);
      if (!got) return bytes + "error: " + got.error().ToString();
      if (*got == 0) return bytes;
      bytes.append(window, 0, *got);
    }
  }

  std::filesystem::path folder_;
  std::vector<TraceFile> files_;
  model::Ledger ledger_;
  std::optional<Error> error_;
};

TEST_F(TraceFilesTest, FoldersAreReadRecursivelyInNaturalOrder) {
  for (const char* name : {"rank10.json", "rank2.json.gz", "rank1.json.zst", "b/rank0.pt.trace.json", "a/b/c/x.json"}) {
    Write(name, "{}");
  }
  EXPECT_THAT(Find({folder_.string()}),
              ElementsAre("a/b/c/x.json", "b/rank0.pt.trace.json", "rank1.json.zst", "rank2.json.gz", "rank10.json"));
  EXPECT_THAT(Codes(), IsEmpty());
  EXPECT_EQ(files_[4].facts.rank, 10);
  EXPECT_EQ(files_[4].size_bytes, 2u);
  EXPECT_FALSE(files_[4].named_by_user);
}

TEST_F(TraceFilesTest, AnExportAsColumnsIsNamedUnlessItsReportIsThereInAnotherForm) {
  for (const char* name : {"rank0.sqlite", "rank0_pqtdir/NVTX_EVENTS.parquet", "rank1_arwdir/NVTX_EVENTS.arrow"}) {
    Write(name, "x");
  }
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank0.sqlite"));
  ASSERT_THAT(Codes(), ElementsAre("nsight_columns"));
  EXPECT_EQ(ledger_.entries()[0].source, Path("rank1_arwdir"));
}

TEST_F(TraceFilesTest, WhatMayBeSomethingElseIsListedBesideTheTraces) {
  for (const char* name :
       {"rank0.json", "a.raw.csv", "b.csv.gz", "c.tsv", "notes.txt", "d.ncu-rep", "e.jsonl", "f.jsonl.gz"}) {
    Write(name, "{}");
  }
  OtherFiles others;
  const auto found = FindTraceFiles({folder_.string(), Path("a.raw.csv")}, {}, &ledger_, &others);
  ASSERT_TRUE(found);
  std::vector<std::string> names;
  for (const InputFile& file : others.tables) {
    names.push_back(file.path.substr(file.path.rfind('/') + 1) + (file.named ? " named" : ""));
  }
  EXPECT_THAT(names, ElementsAre("a.raw.csv", "b.csv.gz", "c.tsv", "d.ncu-rep", "a.raw.csv named"));
  ASSERT_EQ(others.lines.size(), 2u);
  EXPECT_EQ(others.lines[1].path, Path("f.jsonl.gz"));
  EXPECT_EQ(found->size(), 2u);
}

TEST_F(TraceFilesTest, WhatIsNoTraceByNameIsPassedOverWithoutNoise) {
  for (const char* name :
       {"README.md", "LICENSE", "x.csv.gz", "meta.yaml", ".hidden.json", ".git/x.json", "a.pickle", "rank0.json"}) {
    Write(name, "{}");
  }
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank0.json"));
  EXPECT_THAT(Codes(), IsEmpty());
}

TEST_F(TraceFilesTest, AFileNamedByTheUserIsTakenWhateverItsName) {
  Write("notes.txt", "x");
  Write("more/numbers.json", "x");
  EXPECT_THAT(Find({Path("notes.txt"), Path("more")}), ElementsAre("more/numbers.json", "notes.txt"));
  EXPECT_FALSE(files_[0].named_by_user);
  EXPECT_TRUE(files_[1].named_by_user);
}

TEST_F(TraceFilesTest, LinksThatLeadInACircleEnd) {
  Write("a/rank0.json", "{}");
  std::filesystem::create_directory_symlink(folder_, folder_ / "a/up");
  std::filesystem::create_directory_symlink(folder_ / "a", folder_ / "b");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("a/rank0.json"));
}

TEST_F(TraceFilesTest, AFolderBehindALinkIsRead) {
  Write("real/rank0.json", "{}");
  std::filesystem::create_directory(folder_ / "job");
  std::filesystem::create_directory_symlink(folder_ / "real", folder_ / "job/traces");
  EXPECT_THAT(Find({Path("job")}), ElementsAre("job/traces/rank0.json"));
}

TEST_F(TraceFilesTest, OneFileByTwoPathsIsTakenOnceAndSaid) {
  Write("rank0.json", "{}");
  std::filesystem::create_symlink("rank0.json", folder_ / "latest.json");
  EXPECT_THAT(Find({folder_.string(), Path("rank0.json")}), ElementsAre("latest.json"));
  EXPECT_THAT(Codes(), ElementsAre("same_file_twice"));
}

TEST_F(TraceFilesTest, AMissingPathIsNotFound) {
  Write("rank0.json", "{}");
  Find({folder_.string(), Path("absent")});
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, ErrorCode::kNotFound);
  EXPECT_EQ(error_->file, Path("absent"));
}

TEST_F(TraceFilesTest, NothingAtAllIsAnErrorThatSaysWhatWasLookedFor) {
  Write("README.md", "x");
  Find({folder_.string()});
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code, ErrorCode::kNotFound);
  EXPECT_THAT(error_->message, HasSubstr("*.json and *.pftrace"));
}

TEST_F(TraceFilesTest, PipesAndBrokenLinksGoToTheLedger) {
  Write("rank0.json", "{}");
  ASSERT_EQ(::mkfifo(Path("fifo.json").c_str(), 0600), 0);
  std::filesystem::create_symlink("gone", folder_ / "rank1.json");
  EXPECT_THAT(Find({folder_.string(), Path("fifo.json")}), ElementsAre("rank0.json"));
  ASSERT_THAT(Codes(), ElementsAre("unreadable_file", "unreadable_file"));
  EXPECT_EQ(ledger_.entries()[0].source, Path("rank1.json"));
  EXPECT_EQ(ledger_.entries()[1].source, Path("fifo.json"));
}

TEST_F(TraceFilesTest, AnUnfinishedTraceIsNamed) {
  Write("rank0.json", "{}");
  Write("rank1.json.tmp", "");
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank0.json"));
  EXPECT_THAT(Codes(), ElementsAre("unfinished_trace"));
}

TEST_F(TraceFilesTest, DeepFoldersStopAtALimit) {
  std::string deep = "rank0.json";
  for (int i = 0; i < 80; ++i) deep = "d/" + deep;
  Write(deep, "{}");
  Write("rank1.json", "{}");
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank1.json"));
  EXPECT_THAT(Codes(), ElementsAre("unreadable_folder"));
}

TEST_F(TraceFilesTest, NamesOfFilesAreShownWithoutControlCharacters) {
  Write("rank0\x1b[31m\n.json", "{}");
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank0\\x1b[31m\\x0a.json"));
}

std::vector<Entry> ThreeRanks() {
  return {{"job/", "", AE_IFDIR},
          {"job/rank10.json", std::string(300000, 'c')},
          {"job/README", "read me"},
          {"job/rank2.json.gz", test::Gzip("rank two")},
          {"job/" + std::string(200, 'n') + "_rank1.json.zst", test::Zstd("rank one")}};
}

TEST_F(TraceFilesTest, MembersOfEveryKindOfArchiveAreListedAndRead) {
  const std::string tar = MakeArchive(Format::kTar, ThreeRanks());
  Write("a.tar", tar);
  Write("b.tar.gz", test::Gzip(tar));
  Write("c.tgz", test::Gzip(tar));
  Write("d.tar.zst", test::Zstd(tar));
  Write("e.zip", MakeArchive(Format::kZip, ThreeRanks()));
  for (const std::string archive : {"a.tar", "b.tar.gz", "c.tgz", "d.tar.zst", "e.zip"}) {
    EXPECT_THAT(Find({Path(archive)}), ElementsAre(archive + "!job/" + std::string(200, 'n') + "_rank1.json.zst",
                                                   archive + "!job/rank2.json.gz", archive + "!job/rank10.json"));
    ASSERT_EQ(files_.size(), 3u) << archive;
    EXPECT_EQ(files_[0].facts.rank, 1);
    EXPECT_EQ(ReadAll(OpenTraceFile(files_[2], {})), std::string(300000, 'c')) << archive;
    EXPECT_EQ(ReadAll(OpenTraceFile(files_[1], {})), "rank two") << archive;
    EXPECT_EQ(ReadAll(OpenTraceFile(files_[0], {})), "rank one") << archive;
  }
}

TEST_F(TraceFilesTest, OneOpenerReadsMembersInAnyOrder) {
  Write("a.tar.gz", test::Gzip(MakeArchive(Format::kTar, ThreeRanks())));
  Find({folder_.string()});
  ASSERT_EQ(files_.size(), 3u);
  TraceOpener opener({});
  for (const int i : {2, 1, 0, 0, 2, 0, 1}) {
    const std::string expected[] = {"rank one", "rank two", std::string(300000, 'c')};
    EXPECT_EQ(ReadAll(opener.Open(files_[static_cast<size_t>(i)])), expected[i]) << i;
  }
  // A member that was opened and not read to its end does no harm to the next one.
  { auto source = opener.Open(files_[2]); }
  EXPECT_EQ(ReadAll(opener.Open(files_[1])), "rank two");
}

TEST_F(TraceFilesTest, HostileMemberNamesAreOnlyShown) {
  Write("a.tar", MakeArchive(Format::kTar, {{"../../../tmp/lockstep_escape_rank0.json", "up"},
                                            {"/etc/rank1.json", "absolute"},
                                            {"x\n\x1b[2Jrank2.json", "control"},
                                            {"a/\xff\xfe_rank3.json", "bytes"},
                                            {"rank4.json", "first"},
                                            {"rank4.json", "second"}}));
  const auto names = Find({Path("a.tar")});
  ASSERT_EQ(names.size(), 6u);
  EXPECT_FALSE(std::filesystem::exists("/tmp/lockstep_escape_rank0.json"));
  EXPECT_THAT(names, ::testing::Contains("a.tar!x\\x0a\\x1b[2Jrank2.json"));
  EXPECT_THAT(names, ::testing::Contains("a.tar!a/\\xff\\xfe_rank3.json"));
  std::string all;
  for (const TraceFile& file : files_) all += ReadAll(OpenTraceFile(file, {})) + " ";
  EXPECT_THAT(all, HasSubstr("first second"));
}

TEST_F(TraceFilesTest, LinksAndDevicesInArchivesArePassedOver) {
  Write("a.tar", MakeArchive(Format::kTar, {{"rank0.json", "zero"},
                                            {"rank1.json", "", AE_IFLNK, "/etc/passwd"},
                                            {"rank2.json", "", AE_IFREG, "rank0.json"},
                                            {"rank3.json", "", AE_IFCHR},
                                            {"rank4.json", "", AE_IFIFO}}));
  EXPECT_THAT(Find({Path("a.tar")}), ElementsAre("a.tar!rank0.json"));
}

TEST_F(TraceFilesTest, ACutTarGivesWhatIsThereAndIsReported) {
  const std::string tar =
      MakeArchive(Format::kTar, {{"rank0.json", std::string(5000, 'a')}, {"rank1.json", std::string(50000, 'b')}});
  const std::string packed = test::Gzip(tar);
  for (const std::string& bytes : {tar.substr(0, 40000), packed.substr(0, packed.size() - 30)}) {
    Write("a.tar", bytes);
    Find({Path("a.tar")});
    ASSERT_FALSE(files_.empty());
    EXPECT_THAT(Codes(), ElementsAre("unreadable_archive"));
    EXPECT_EQ(ReadAll(OpenTraceFile(files_[0], {})).substr(0, 10), "aaaaaaaaaa");
    if (files_.size() == 2) {
      const std::string cut = ReadAll(OpenTraceFile(files_[1], {}));
      EXPECT_THAT(cut, HasSubstr("bbberror: "));
    }
  }
}

TEST_F(TraceFilesTest, ATarCutAtAnyByteNeverCrashes) {
  const std::string tar = MakeArchive(Format::kTar, ThreeRanks());
  const std::string zip = MakeArchive(Format::kZip, ThreeRanks());
  for (const std::string& whole : {tar, zip, test::Gzip(tar)}) {
    for (size_t cut = 0; cut < whole.size(); cut += 1 + cut / 20) {
      Write("a.tar", whole.substr(0, cut));
      Find({Path("a.tar")});
      for (const TraceFile& file : files_) ReadAll(OpenTraceFile(file, {}));
    }
  }
}

TEST_F(TraceFilesTest, WhatIsNoArchiveIsReported) {
  Write("a.tar", "this is not an archive, whatever its name says " + std::string(2000, 'x'));
  Write("rank0.json", "{}");
  EXPECT_THAT(Find({folder_.string()}), ElementsAre("rank0.json"));
  EXPECT_THAT(Codes(), ElementsAre("unreadable_archive"));
}

TEST_F(TraceFilesTest, AnArchiveInAnArchiveIsReported) {
  Write("a.tar", MakeArchive(Format::kTar, {{"inner.tgz", "x"}, {"rank0.json", "{}"}}));
  EXPECT_THAT(Find({Path("a.tar")}), ElementsAre("a.tar!rank0.json"));
  EXPECT_THAT(Codes(), ElementsAre("nested_archive"));
}

TEST_F(TraceFilesTest, ABombInATarStopsAtTheLimit) {
  Write("a.tar.gz", test::Gzip(MakeArchive(Format::kTar, {{"rank0.json", std::string(200000, 'x')}})));
  model::Ledger ledger;
  const ByteLimits limits = {.max_output_bytes = 100000};
  auto found = FindTraceFiles({Path("a.tar.gz")}, limits, &ledger);
  ASSERT_TRUE(found);
  EXPECT_THAT(ReadAll(OpenTraceFile((*found)[0], limits)), HasSubstr("decompresses to more than"));
  // Inside a zip libarchive decompresses; the limit holds all the same.
  Write("b.zip", MakeArchive(Format::kZip, {{"rank0.json", std::string(200000, 'x')}}));
  found = FindTraceFiles({Path("b.zip")}, limits, &ledger);
  ASSERT_TRUE(found);
  EXPECT_THAT(ReadAll(OpenTraceFile((*found)[0], limits)), HasSubstr("decompresses to more than"));
}

TEST_F(TraceFilesTest, ADamagedMemberOfAZipIsReportedAfterItsData) {
  // Bytes that do not compress lie in the zip as they are.
  std::mt19937 random(3);
  std::string data(4000, '\0');
  for (char& c : data) c = static_cast<char>(random());
  std::string zip = MakeArchive(Format::kZip, {{"rank0.json", data}});
  const size_t place = zip.find(data.substr(2000, 100));
  ASSERT_NE(place, std::string::npos);
  zip[place] = static_cast<char>(zip[place] ^ 1);
  Write("b.zip", zip);
  ASSERT_THAT(Find({Path("b.zip")}), ElementsAre("b.zip!rank0.json"));
  EXPECT_THAT(ReadAll(OpenTraceFile(files_[0], {})), HasSubstr("error: "));
}

TEST_F(TraceFilesTest, AnArchiveThatChangedIsNotFound) {
  Write("a.tar", MakeArchive(Format::kTar, {{"rank0.json", "zero"}, {"rank1.json", "one"}}));
  Find({Path("a.tar")});
  ASSERT_EQ(files_.size(), 2u);
  Write("a.tar", MakeArchive(Format::kTar, {{"other0.json", "zero"}, {"other1.json", "one"}}));
  EXPECT_EQ(OpenTraceFile(files_[0], {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(OpenTraceFile(files_[1], {}).error().code, ErrorCode::kNotFound);
}

TEST_F(TraceFilesTest, UnreadableFoldersAndArchivesGoToTheLedger) {
  Write("rank0.json", "{}");
  Write("closed/rank1.json", "{}");
  ::chmod(Path("closed").c_str(), 0);
  {
    const Unprivileged user;
    ASSERT_TRUE(user.ok());
    Find({folder_.string()});
  }
  EXPECT_THAT(Codes(), ElementsAre("unreadable_folder"));
  ::chmod(Path("closed").c_str(), 0700);
}

}  // namespace
}  // namespace lockstep::ingest
