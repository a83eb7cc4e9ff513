#include "programs/cli/terminal/browser.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/temporary_folder.h"

namespace lockstep::cli {
namespace {

class BrowserTest : public testing::Test {
 protected:
  BrowserTest() { ::setenv("PATH", folder_.path().c_str(), 1); }
  ~BrowserTest() override { ::setenv("PATH", path_.c_str(), 1); }

  const std::string path_ = std::getenv("PATH");
  TemporaryFolder folder_{"lockstep-browser"};
};

TEST_F(BrowserTest, WhereNoneIsThereThatIsSaid) { EXPECT_FALSE(OpenInBrowser("http://127.0.0.1:1/")); }

TEST_F(BrowserTest, ItIsNoChildOfOursAndOursAreStillWaitedFor) {
  const std::string opened = folder_.File("opened");
  {
    std::ofstream script(folder_.File("xdg-open"));
    script << "#!/bin/sh\necho \"$1\" > " << opened << ".part\n/bin/mv " << opened << ".part " << opened << "\n";
  }
  std::filesystem::permissions(folder_.File("xdg-open"), std::filesystem::perms::owner_all);
  ASSERT_TRUE(OpenInBrowser("http://127.0.0.1:1/?a=b"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  struct sigaction action = {};
  ::sigaction(SIGCHLD, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
  EXPECT_EQ(action.sa_flags & SA_NOCLDWAIT, 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(opened) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::ifstream in(opened);
  std::string url;
  std::getline(in, url);
  EXPECT_EQ(url, "http://127.0.0.1:1/?a=b");
}

}  // namespace
}  // namespace lockstep::cli
