#include "node/agent/capture/output_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "node/agent/capture/beneath.h"
#include "node/agent/capture/fake_registry.h"
#include "node/agent/capture/process_view.h"

namespace lockstep::agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kind = FileObservation::Kind;

constexpr uint32_t kOtherUid = 23456;

// Runs `work` in a child as `uid`; true when it says so.
bool RunAs(uint32_t uid, const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    const bool ready = uid == geteuid() || (setgid(uid) == 0 && setuid(uid) == 0);
    _exit(ready && work() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

class OutputFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep-test-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    top_ = name;
    ASSERT_EQ(chmod(name, 0755), 0);
    base_ = top_ + "/out";
  }
  void TearDown() override { std::filesystem::remove_all(top_); }
  static uint32_t JobUid() { return geteuid() == 0 ? kJobUid : geteuid(); }
  static struct stat StatOf(const std::string& path) {
    struct stat entry = {};
    EXPECT_EQ(lstat(path.c_str(), &entry), 0) << path;
    return entry;
  }
  std::string top_;
  std::string base_;
};

TEST_F(OutputFolderTest, BelongsToTheJobAloneAndCanBeWrittenByIt) {
  TestChild child(JobUid());
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child.pid()), "capture1", base_);
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_EQ(made->problem, "");
  const std::string path = made->folder->path();
  EXPECT_THAT(path, StartsWith(base_ + "/capture1-"));
  EXPECT_EQ(path.size(), base_.size() + 1 + 8 + 1 + 12);
  EXPECT_EQ(StatOf(path).st_uid, JobUid());
  EXPECT_EQ(StatOf(path).st_mode & 07777, 0700u);
  EXPECT_EQ(StatOf(base_).st_mode & 07777, geteuid() == 0 ? 0711u : 0700u);
  EXPECT_EQ(StatOf(base_).st_uid, geteuid());
  EXPECT_TRUE(RunAs(JobUid(), [&] { return std::ofstream(path + "/t.json.tmp").put('x').good(); }));
  EXPECT_EQ(made->folder->Observe("t.json").kind, Kind::kUnfinished);
  EXPECT_TRUE(RunAs(JobUid(), [&] { return rename((path + "/t.json.tmp").c_str(), (path + "/t.json").c_str()) == 0; }));
  EXPECT_EQ(made->folder->Observe("t.json").kind, Kind::kFinished);
  EXPECT_TRUE(made->folder->Open("t.json"));
  made->folder->Remove();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(base_));
}

TEST_F(OutputFolderTest, ASquattedBaseIsPassedOver) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  const control::Process process = FakeRegistry::ProcessOf(child.pid());
  ASSERT_EQ(chmod(top_.c_str(), 01777), 0);
  const auto squat = {std::function<void()>([&] {
                        mkdir(base_.c_str(), 0777);
                        ASSERT_EQ(chown(base_.c_str(), kOtherUid, kOtherUid), 0);
                      }),
                      std::function<void()>([&] { ASSERT_EQ(symlink("/etc", base_.c_str()), 0); }),
                      std::function<void()>([&] { std::ofstream(base_) << "x"; })};
  for (const auto& take : squat) {
    std::filesystem::remove_all(base_);
    take();
    auto made = OutputFolder::Make(process, "capture1", base_);
    ASSERT_TRUE(made) << made.error().ToString();
    EXPECT_THAT(made->problem, HasSubstr("beside it"));
    EXPECT_THAT(made->folder->path(), StartsWith(top_ + "/out-capture1-"));
    EXPECT_EQ(StatOf(made->folder->path()).st_uid, kJobUid);
    EXPECT_EQ(StatOf(made->folder->path()).st_mode & 07777, 0700u);
    const std::string path = made->folder->path();
    made->folder->Remove();
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists("/etc/capture1"));
}

TEST_F(OutputFolderTest, AForeignOrOpenParentIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  const control::Process process = FakeRegistry::ProcessOf(child.pid());
  mkdir((top_ + "/theirs").c_str(), 0755);
  ASSERT_EQ(symlink("/etc", (top_ + "/theirs/out").c_str()), 0);
  ASSERT_EQ(chown((top_ + "/theirs").c_str(), kOtherUid, kOtherUid), 0);
  auto made = OutputFolder::Make(process, "capture1", top_ + "/theirs/out");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(made.error().message, HasSubstr("uid 23456"));

  mkdir((top_ + "/open").c_str(), 0755);
  ASSERT_EQ(symlink("/etc", (top_ + "/open/out").c_str()), 0);
  ASSERT_EQ(chmod((top_ + "/open").c_str(), 0777), 0);
  made = OutputFolder::Make(process, "capture1", top_ + "/open/out");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("sticky"));
}

TEST_F(OutputFolderTest, ALinkOnTheWayIsRefused) {
  TestChild child(JobUid());
  ASSERT_EQ(symlink("/tmp", (top_ + "/link").c_str()), 0);
  const auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child.pid()), "capture1", top_ + "/link/out");
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("symbolic link"));
}

TEST_F(OutputFolderTest, AnotherUsersProcessNeedsRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  control::Process process = FakeRegistry::ProcessOf(child.pid());
  EXPECT_TRUE(RunAs(kOtherUid, [&] {
    const auto made = OutputFolder::Make(process, "capture1", base_);
    return !made && made.error().code == ErrorCode::kPermissionDenied;
  }));
}

TEST_F(OutputFolderTest, LinksUnderTheTracesNameAreNeitherTakenNorRemovedThrough) {
  TestChild child(JobUid());
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child.pid()), "capture1", base_);
  ASSERT_TRUE(made);
  const std::string path = made->folder->path();
  const std::string secret = top_ + "/secret";
  std::ofstream(secret) << "secret";
  ASSERT_EQ(symlink(secret.c_str(), (path + "/sym.json").c_str()), 0);
  ASSERT_EQ(link(secret.c_str(), (path + "/hard.json").c_str()), 0);
  ASSERT_EQ(mkfifo((path + "/fifo.json").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((path + "/folder.json").c_str(), 0700), 0);
  ASSERT_EQ(symlink("/", (path + "/root").c_str()), 0);
  ASSERT_EQ(symlink(top_.c_str(), (path + "/folder.json/up").c_str()), 0);
  std::ofstream(path + "/folder.json/file") << "x";
  for (const char* name : {"fifo.json", "folder.json", "folder.json/file"}) {
    ASSERT_EQ(chown((path + "/" + name).c_str(), JobUid(), static_cast<gid_t>(-1)), 0);
  }
  for (const char* name : {"sym.json", "hard.json", "fifo.json", "folder.json"}) {
    EXPECT_EQ(made->folder->Observe(name).kind, Kind::kUnusable) << name;
    const auto open = made->folder->Open(name);
    ASSERT_FALSE(open) << name;
    EXPECT_EQ(open.error().code, ErrorCode::kPermissionDenied) << name;
  }
  for (const char* name : {"../../secret", "root/etc/passwd", "/etc/passwd", "none.json", "..", "."}) {
    EXPECT_FALSE(made->folder->Open(name)) << name;
  }
  made->folder->Remove();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(secret));
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

TEST_F(OutputFolderTest, AFileOfAnotherUserIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child.pid()), "capture1", base_);
  ASSERT_TRUE(made);
  std::ofstream(made->folder->path() + "/x.json") << "root's";
  EXPECT_EQ(made->folder->Observe("x.json").kind, Kind::kUnusable);
  EXPECT_FALSE(made->folder->Open("x.json"));
}

TEST_F(OutputFolderTest, AFolderThatWasSwappedIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a second user";
  TestChild child(kJobUid);
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child.pid()), "capture1", base_);
  ASSERT_TRUE(made);
  const std::string path = made->folder->path();
  ASSERT_EQ(rename(path.c_str(), (path + "-away").c_str()), 0);
  ASSERT_EQ(symlink("/etc", path.c_str()), 0);
  EXPECT_EQ(made->folder->Observe("passwd").kind, Kind::kNoFolder);
  EXPECT_FALSE(made->folder->Open("passwd"));
  made->folder->Remove();
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);  // Root's now.
  EXPECT_EQ(made->folder->Observe("x.json").kind, Kind::kNoFolder);
}

TEST_F(OutputFolderTest, ItIsFoundAgainAfterARestart) {
  TestChild child(JobUid());
  const control::Process process = FakeRegistry::ProcessOf(child.pid());
  auto made = OutputFolder::Make(process, "capture1", base_);
  ASSERT_TRUE(made);
  const std::string path = made->folder->path();
  made->folder.reset();
  child.End();
  auto reopened = OutputFolder::Reopen(process, path, false);
  ASSERT_TRUE(reopened) << reopened.error().ToString();
  (*reopened)->Remove();
  EXPECT_FALSE(OutputFolder::Reopen(process, path, false));
  EXPECT_FALSE(OutputFolder::Reopen(process, "/etc", false) && geteuid() != 0);
  EXPECT_FALSE(OutputFolder::Reopen(process, path + "/../..", false));
}

// A process in a mount namespace of its own, with another /tmp: as in a container.
class OtherViewTest : public OutputFolderTest {
 protected:
  void SetUp() override {
    OutputFolderTest::SetUp();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      const bool inside = unshare(CLONE_NEWNS) == 0 &&
                          mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0;
      if (write(ready[1], inside ? "y" : "n", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char answer = 'n';
    ASSERT_EQ(read(ready[0], &answer, 1), 1);
    close(ready[0]);
    close(ready[1]);
    if (answer != 'y') GTEST_SKIP() << "no mount namespace can be made here";
  }
  void TearDown() override {
    End();
    OutputFolderTest::TearDown();
  }
  void End() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  std::string Inside(const std::string& path) const { return fmt::format("/proc/{}/root{}", child_, path); }
  pid_t child_ = 0;
};

TEST_F(OtherViewTest, TheFolderIsMadeInTheProcessesOwnTmp) {
  ASSERT_TRUE(HasOtherFileView(child_));
  EXPECT_FALSE(HasOtherFileView(getpid()));
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child_), "capture1", "/tmp/other-view-test");
  ASSERT_TRUE(made) << made.error().ToString();
  const std::string path = made->folder->path();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::is_directory(Inside(path)));
  std::ofstream(Inside(path) + "/t.json") << "trace";
  EXPECT_EQ(made->folder->Observe("t.json").kind, Kind::kFinished);
  End();  // The container is gone with its last process; what we hold of it is not.
  EXPECT_EQ(made->folder->Observe("t.json").kind, Kind::kFinished);
  const auto open = made->folder->Open("t.json");
  ASSERT_TRUE(open) << open.error().ToString();
  EXPECT_EQ(open->size_bytes, 5u);
  made->folder->Remove();
  EXPECT_EQ(made->folder->Observe("t.json").kind, Kind::kNoFolder);
}

TEST_F(OtherViewTest, ALinkOfTheContainerDoesNotLeadOutOfIt) {
  ASSERT_EQ(symlink(top_.c_str(), Inside("/tmp/link").c_str()), 0);
  ASSERT_FALSE(OutputFolder::Make(FakeRegistry::ProcessOf(child_), "capture1", "/tmp/link/out"));
  auto made = OutputFolder::Make(FakeRegistry::ProcessOf(child_), "capture1", "/tmp/link");
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_THAT(made->folder->path(), StartsWith("/tmp/link-capture1-"));
  EXPECT_TRUE(std::filesystem::is_empty(top_));
  made->folder->Remove();
}

TEST_F(OtherViewTest, ItIsFoundAgainThroughTheProcess) {
  const control::Process process = FakeRegistry::ProcessOf(child_);
  auto made = OutputFolder::Make(process, "capture1", "/tmp/other-view-test");
  ASSERT_TRUE(made);
  const std::string path = made->folder->path();
  auto reopened = OutputFolder::Reopen(process, path, false);
  ASSERT_TRUE(reopened) << reopened.error().ToString();
  EXPECT_EQ((*reopened)->Observe("t.json").kind, Kind::kNone);
  (*reopened)->Remove();
  EXPECT_FALSE(std::filesystem::exists(Inside(path)));
}

TEST(OutputBaseTest, NewVersionsWriteBelowTheirVariableOrTmp) {
  const auto path = [](const std::optional<std::string>& variable, const std::string& version,
                       const std::string& base) -> std::string {
    const auto of = OutputBaseOf(variable, version, base);
    return of ? of->path + (of->given ? " given" : "") : ErrorCodeName(of.error().code);
  };
  const std::string own = geteuid() == 0 ? "/tmp/lockstep" : fmt::format("/tmp/lockstep-{}", geteuid());
  EXPECT_EQ(path({}, "2.14.0", "/tmp/x"), "/tmp/x");
  EXPECT_EQ(path({}, "2.14.0", "/scratch/x"), own);
  EXPECT_EQ(path({}, "", "/scratch/x"), own);
  EXPECT_EQ(path({}, "2.13.0+cpu", "/scratch/x"), "/scratch/x");
  EXPECT_EQ(path({}, "", "/tmp/lockstep"), own);
  EXPECT_EQ(path("/data/traces", "2.14.0", "/tmp/x"), "/data/traces given");
  EXPECT_EQ(path("/data/traces/", "", "/tmp/x"), "/data/traces given");
  EXPECT_EQ(path("/data/traces", "2.13.0", "/tmp/x"), "/tmp/x");
  EXPECT_EQ(path("/tmp/", "2.14.0", "/tmp/x"), "/tmp/x");
  for (const char* bad : {"relative", "/a/../b", "/a=b", "/a#b", "/a\nb", "/x.json", "/a b", "/", "//a", "/a/./b"}) {
    EXPECT_EQ(path(bad, "2.14.0", "/tmp/x"), "failed_precondition") << bad;
  }
}

TEST(ProcessViewTest, AnEndedProcessAndAReusedPidAreTold) {
  TestChild child;
  control::Process process = FakeRegistry::ProcessOf(child.pid());
  EXPECT_EQ(HasEnded(process), false);
  control::Process earlier = process;
  earlier.start_ticks -= 1;
  EXPECT_EQ(HasEnded(earlier), true);
  child.End();
  EXPECT_EQ(HasEnded(process), true);
  EXPECT_EQ(HasEnded({}), std::nullopt);
}

TEST(ProcessViewTest, EnvironmentAndAncestorsAreRead) {
  EXPECT_FALSE(EnvironmentOf(getpid(), "LOCKSTEP_SURELY_NOT_SET"));
  const auto path = EnvironmentOf(getpid(), "PATH");
  if (const char* own = getenv("PATH")) {
    EXPECT_EQ(path, own);
  }
  const auto ancestors = AncestorsOf(getpid());
  ASSERT_FALSE(ancestors.empty());
  EXPECT_EQ(ancestors.front(), getppid());
  EXPECT_EQ(TorchRelease("2.13.0+cpu"), std::pair(2, 13));
  EXPECT_EQ(TorchRelease("2.14.0a0+git1"), std::pair(2, 14));
  for (const char* bad : {"", "2", "2.", "x.y", "nightly"}) EXPECT_EQ(TorchRelease(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace lockstep::agent
