#include "node/agent/capture/capture_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "node/agent/capture/capture_record.h"

namespace lockstep::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Lets the n-th call fail; every call after it too when `stays` (the process was killed, or the disk is gone).
class FailingFiles : public StoreFiles {
 public:
  int fail_at = -1;
  bool stays = false;
  int calls = 0;

  int Create(int folder, const char* name) override { return Fails() ? -1 : StoreFiles::Create(folder, name); }
  ssize_t Write(int file, const char* bytes, size_t size) override {
    if (!Fails()) return StoreFiles::Write(file, bytes, std::min<size_t>(size, 10));  // In small parts.
    StoreFiles::Write(file, bytes, std::min<size_t>(size, 3));
    errno = ENOSPC;
    return -1;
  }
  int Sync(int file) override { return Fails() ? -1 : StoreFiles::Sync(file); }
  int Rename(int folder, const char* from, const char* to) override {
    return Fails() ? -1 : StoreFiles::Rename(folder, from, to);
  }
  int Unlink(int folder, const char* name) override { return Fails() ? -1 : StoreFiles::Unlink(folder, name); }

 private:
  bool Fails() {
    const int call = calls++;
    errno = EIO;
    return fail_at >= 0 && (call == fail_at || (stays && call > fail_at));
  }
};

class CaptureStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    top_ = name;
    folder_ = top_ + "/a/b";
  }
  void TearDown() override { std::filesystem::remove_all(top_); }
  std::unique_ptr<CaptureStore> Open(StoreFiles* files = nullptr) {
    auto store = CaptureStore::Open(folder_, files);
    EXPECT_TRUE(store) << store.error().ToString();
    return store ? std::move(*store) : nullptr;
  }
  std::string top_;
  std::string folder_;
};

TEST_F(CaptureStoreTest, WhatIsWrittenIsRead) {
  ASSERT_TRUE(Open()->Write("abc", "one"));
  ASSERT_TRUE(Open()->Write("abd", "two"));
  ASSERT_TRUE(Open()->Write("abc", "three"));
  const auto loaded = Open()->Load();
  ASSERT_THAT(loaded.entries, SizeIs(2));
  EXPECT_EQ(loaded.entries[0].text, "three");
  EXPECT_EQ(loaded.entries[1].id, "abd");
  EXPECT_THAT(loaded.problems, SizeIs(0));
  ASSERT_TRUE(Open()->Remove("abc"));
  ASSERT_TRUE(Open()->Remove("abc"));  // It is gone either way.
  EXPECT_THAT(Open()->Load().entries, SizeIs(1));
}

TEST_F(CaptureStoreTest, FolderAndFilesAreTheOwnersAlone) {
  ASSERT_TRUE(Open()->Write("abc", "one"));
  struct stat entry;
  ASSERT_EQ(stat(folder_.c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 07777, 0700u);
  ASSERT_EQ(stat((folder_ + "/abc.json").c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 07777, 0600u);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  Open();
  ASSERT_EQ(stat(folder_.c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 07777, 0700u);
}

TEST_F(CaptureStoreTest, AnotherUsersFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  Open();
  ASSERT_EQ(chown(folder_.c_str(), 12345, 12345), 0);
  const auto store = CaptureStore::Open(folder_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kPermissionDenied);
}

// Every call in turn fails once, and for good: what is read after is the old text or the new one, whole.
TEST_F(CaptureStoreTest, WhicheverCallFailsTheTextIsWhole) {
  const std::string before(100, 'o');
  const std::string after(200, 'n');
  for (const bool stays : {false, true}) {
    int calls = 1;
    for (int n = 0; n <= calls; ++n) {
      ASSERT_TRUE(Open()->Write("abc", before));
      FailingFiles files;
      files.fail_at = n;
      files.stays = stays;
      const Status status = Open(&files)->Write("abc", after);
      calls = std::max(calls, files.calls);
      ASSERT_LT(calls, 100);
      const auto loaded = Open()->Load();
      ASSERT_THAT(loaded.entries, SizeIs(1)) << n;
      const std::string& text = loaded.entries[0].text;
      EXPECT_TRUE(text == after || (!status && text == before)) << n << " " << stays << " " << text;
      EXPECT_THAT(loaded.problems, SizeIs(0));
    }
  }
  size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) left += entry.exists() ? 1 : 0;
  EXPECT_EQ(left, 1u);  // No temporary file stays.
}

TEST_F(CaptureStoreTest, AFirstWriteThatFailsLeavesNothing) {
  for (int n = 1; n < 5; ++n) {
    FailingFiles files;
    files.fail_at = n;
    ASSERT_FALSE(Open(&files)->Write("abc", "text")) << n;
    if (Open()->Load().entries.empty()) continue;
    EXPECT_EQ(Open()->Load().entries[0].text, "text");  // Only the last flush failed.
    ASSERT_TRUE(Open()->Remove("abc"));
  }
}

TEST_F(CaptureStoreTest, IdsCannotLeaveTheFolder) {
  const auto store = Open();
  for (const char* id : {"", "..", "../x", "a/b", "A", "a.b", "a\n"}) {
    EXPECT_FALSE(store->Write(id, "x")) << id;
    EXPECT_FALSE(store->Remove(id)) << id;
  }
}

TEST_F(CaptureStoreTest, StrangeFilesAreSetAsideOrLeft) {
  const auto store = Open();
  ASSERT_TRUE(store->Write("abc", "one"));
  ASSERT_EQ(symlink("/etc/passwd", (folder_ + "/link.json").c_str()), 0);
  ASSERT_EQ(mkfifo((folder_ + "/fifo.json").c_str(), 0600), 0);
  std::ofstream(folder_ + "/Not Ours.json") << "x";
  std::ofstream(folder_ + "/old.json.new") << "half";
  const auto loaded = store->Load();
  ASSERT_THAT(loaded.entries, SizeIs(1));
  EXPECT_THAT(loaded.problems, SizeIs(2));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/fifo.json.corrupt"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/old.json.new"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/Not Ours.json"));
}

CaptureRecord SomeRecord() {
  CaptureRecord record;
  record.capture.id = "abcdefghij012345";
  record.capture.spec.group = "g";
  record.capture.created_unix_ns = 5;
  record.capture.requested_by = "quote\" and \\ and \xc3\xa9";
  control::CaptureTarget target;
  target.process.id = "12-34";
  target.process.pid = 12;
  target.process.rank = 3;
  target.state = control::TargetState::kDelivered;
  target.delivered_unix_ns = 77;
  record.capture.targets.push_back(target);
  record.places.push_back(
      {.folder = "/tmp/x", .log_name = "a.json", .final_name = "a_12.json", .trace_name = "b.json", .foreign = true});
  record.caller = {.uid = 1000, .may_trace_all = true, .name = "alice"};
  record.foreign_log_file = "/tmp/x/a.json";
  record.join_until_unix_ns = 8;
  record.wait_until_unix_ns = 9;
  record.discard = true;
  return record;
}

TEST(CaptureRecordTest, AllOfItComesBack) {
  const CaptureRecord record = SomeRecord();
  const auto read = ReadRecord(ToText(record));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(ToText(*read), ToText(record));
  EXPECT_EQ(read->capture.targets[0].process.rank, 3);
  EXPECT_EQ(read->places[0].final_name, "a_12.json");
  EXPECT_TRUE(read->places[0].foreign);
  EXPECT_EQ(read->caller.uid, 1000u);
}

TEST(CaptureRecordTest, EveryCutTextIsAnError) {
  const std::string text = ToText(SomeRecord());
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(ReadRecord(text.substr(0, length))) << length;
}

TEST(CaptureRecordTest, DamagedBytesNeverCrash) {
  const std::string text = ToText(SomeRecord());
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '"', '{', '[', '9', '-', '\xff'}) {
      std::string damaged = text;
      damaged[at] = c;
      (void)ReadRecord(damaged).has_value();
    }
  }
}

TEST(CaptureRecordTest, DepthIsBounded) {
  EXPECT_FALSE(ReadRecord("{\"version\":1,\"capture\":{\"x\":" + std::string(1'000'000, '[')));
  std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(ReadRecord("{\"version\":1,\"places\":[],\"capture\":{\"x\":" + deep + "}}"));
}

TEST(CaptureRecordTest, ALaterVersionIsNotRead) {
  const auto read = ReadRecord("{\"version\":2}");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
}

TEST(CaptureRecordTest, AFileNameIsNoPath) {
  std::string text = ToText(SomeRecord());
  text.replace(text.find("a_12.json"), 9, "../x.json");
  EXPECT_FALSE(ReadRecord(text));
}

}  // namespace
}  // namespace lockstep::agent
