#include "present/live_site/live_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/nanoseconds.h"
#include "present/live_site/access.h"

namespace lockstep::live_site {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

http::Request Ask(const std::string& path, const std::string& query = "", http::Method method = http::Method::kGet) {
  http::Request request;
  request.method = method;
  request.path = path;
  request.query = query;
  return request;
}

std::string Body(const http::Response& response) { return response.body ? *response.body : ""; }

class LiveSiteTest : public testing::Test {
 protected:
  SiteOptions Options(int64_t interval_ns = kSecondNs / 100) {
    SiteOptions options;
    options.token = "0123456789abcdef0123456789abcdef";
    options.node_count = 1;
    options.watch.interval_ns = interval_ns;
    options.watch.idle_interval_ns = 1000 * kSecondNs;
    options.watch.look = [this] {
      const std::lock_guard lock(mutex_);
      live::View view;
      view.look_count = ++look_count_;
      view.taken_unix_ns = 1'700'000'000 * kSecondNs + static_cast<int64_t>(look_count_) * kSecondNs;
      view.jobs.emplace_back().job_id = "j";
      changed_.notify_all();
      return view;
    };
    return options;
  }
  void WaitForLooks(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return look_count_ >= count; }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t look_count_ = 0;
};

TEST_F(LiveSiteTest, NothingIsSaidWithoutTheToken) {
  LiveSite site(Options());
  for (const char* path :
       {"/api/live/events", "/api/live/history", "/api/live/view", "/api/live/captures", "/api/live/x"}) {
    EXPECT_EQ(site.Answer(Ask(path)).status, 401) << path;
    EXPECT_EQ(site.Answer(Ask(path, "token=")).status, 401) << path;
    EXPECT_EQ(site.Answer(Ask(path, "token=0123456789abcdef0123456789abcdee")).status, 401) << path;
    EXPECT_EQ(site.Answer(Ask(path, "atoken=0123456789abcdef0123456789abcdef")).status, 401) << path;
    EXPECT_EQ(site.Answer(Ask(path)).events, nullptr) << path;
  }
  http::Request request = Ask("/api/live/history");
  request.authorization = "Bearer 0123456789abcdef0123456789abcdef";
  EXPECT_EQ(site.Answer(request).status, 200);
  request.authorization = "Basic 0123456789abcdef0123456789abcdef";
  request.query = "token=0123456789abcdef0123456789abcdef";
  EXPECT_EQ(site.Answer(request).status, 401);
}

TEST_F(LiveSiteTest, ACodeLeadsToThePageOnceAndItsUserOnly) {
  SiteOptions options = Options();
  options.browser_code = "00000000000000000000000000000001";
  LiveSite site(std::move(options));
  http::Request request = Ask("/", "code=00000000000000000000000000000001");
  EXPECT_EQ(site.Answer(request).status, 403);  // It is not known who asks.
  request.peer.uid = ::geteuid() + 1;
  EXPECT_EQ(site.Answer(request).status, 403);
  request.peer.uid = ::geteuid();
  request.query = "code=00000000000000000000000000000002";
  EXPECT_EQ(site.Answer(request).status, 403);
  request.query = "code=00000000000000000000000000000001";
  const http::Response answer = site.Answer(request);
  EXPECT_EQ(answer.status, 303);
  ASSERT_EQ(answer.headers.size(), 1U);
  EXPECT_EQ(answer.headers[0].second, "/?token=0123456789abcdef0123456789abcdef");
  EXPECT_EQ(site.Answer(request).status, 403);
  // Without a code there is none to guess.
  LiveSite other(Options());
  request.query = "code=";
  EXPECT_EQ(other.Answer(request).status, 403);
}

TEST_F(LiveSiteTest, ThePageHasNoDataAndNoToken) {
  LiveSite site(Options());
  const http::Response page = site.Answer(Ask("/", "token=0123456789abcdef0123456789abcdef"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(Body(page), HasSubstr(R"(<meta name="lockstep-kind" content="live">)"));
  EXPECT_THAT(Body(page), HasSubstr("connect-src 'self'"));
  EXPECT_THAT(Body(page), Not(HasSubstr("0123456789abcdef")));
  EXPECT_THAT(Body(site.Answer(Ask("/data/main"))), HasSubstr(R"("kind":"live")"));
  EXPECT_EQ(site.Answer(Ask("/data/steps")).status, 404);
}

TEST_F(LiveSiteTest, WhoListensHearsTheNewestViewAndTheLog) {
  LiveSite site(Options());
  WaitForLooks(1);
  const http::Response response = site.Answer(Ask("/api/live/events", "token=0123456789abcdef0123456789abcdef"));
  ASSERT_NE(response.events, nullptr);
  EXPECT_EQ(response.content_type, "text/event-stream");
  WaitForLooks(20);  // Nobody takes anything: there is no backlog.
  bool closed = false;
  const std::string said = response.events->Take(&closed);
  EXPECT_THAT(said, HasSubstr("event: health\ndata: {\"dropped_count\":0"));
  const size_t view = said.find("event: view\ndata: {\"schema\":\"lockstep.top/1\"");
  ASSERT_NE(view, std::string::npos) << said;
  EXPECT_EQ(said.find("event: view", view + 1), std::string::npos);
  EXPECT_TRUE(said.ends_with("}\n\n"));
}

TEST_F(LiveSiteTest, OneLookServesAllWhoListen) {
  LiveSite site(Options());
  WaitForLooks(1);  // The next is due in a thousand seconds, or when somebody comes.
  const auto first = site.Answer(Ask("/api/live/events", "token=0123456789abcdef0123456789abcdef")).events;
  const auto second = site.Answer(Ask("/api/live/events", "token=0123456789abcdef0123456789abcdef")).events;
  WaitForLooks(5);
  bool closed = false;
  EXPECT_THAT(first->Take(&closed), HasSubstr("event: view"));
  EXPECT_THAT(second->Take(&closed), HasSubstr("event: view"));
}

TEST_F(LiveSiteTest, HistoryIsPackedWhereItMayBe) {
  LiveSite site(Options());
  WaitForLooks(1);
  site.Answer(Ask("/api/live/events", "token=0123456789abcdef0123456789abcdef"));
  http::Request request = Ask("/api/live/history", "token=0123456789abcdef0123456789abcdef");
  EXPECT_THAT(Body(site.Answer(request)), HasSubstr("lockstep.live-history/1"));
  request.accepts_gzip = true;
  EXPECT_TRUE(site.Answer(request).gzip);
}

TEST_F(LiveSiteTest, AnActionIsTakenToldOfAndAnswered) {
  SiteOptions options = Options();
  options.hangs.emplace();
  options.hangs->collect = [](const std::string& job_id, const auto& on_node) -> Result<std::string> {
    on_node(1, 2);
    return Error{ErrorCode::kNotFound, "no process of job " + job_id + " was found"};
  };
  std::vector<std::string> lines;
  options.audit = [&](const std::string& line) { lines.push_back(line); };
  LiveSite site(std::move(options));
  const std::string query = "token=0123456789abcdef0123456789abcdef";
  http::Request request = Ask("/api/live/hang", "", http::Method::kPost);
  request.body = R"({"job_id":"4711"})";
  EXPECT_EQ(site.Answer(request).status, 401);
  EXPECT_TRUE(lines.empty());
  request.query = query;
  const http::Response taken = site.Answer(request);
  EXPECT_EQ(taken.status, 202) << Body(taken);
  EXPECT_THAT(Body(taken), ::testing::MatchesRegex(R"(\{"id":"[0-9a-f]{32}"\})"));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("evidence of job '4711': taken"));
  const auto events = site.Answer(Ask("/api/live/events", query)).events;
  std::string said;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (said.find("\"failed\"") == std::string::npos && std::chrono::steady_clock::now() < until) {
    bool closed = false;
    said = events->Take(&closed);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_THAT(said, HasSubstr("no process of job 4711 was found"));
  EXPECT_THAT(said, HasSubstr(R"("done_count":1,"total_count":2)"));
  const std::string id = Body(taken).substr(7, 32);
  EXPECT_EQ(site.Answer(Ask("/hangs/" + id + "/")).status, 404);
  // Captures were not set up.
  request.path = "/api/live/captures";
  EXPECT_EQ(site.Answer(request).status, 404);
  request.path = "/api/live/hang";
  request.body = R"({"job_id":"a\nb","x":1})";
  EXPECT_EQ(site.Answer(request).status, 400);
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("\n")));
}

TEST(AccessTest, NamesAreNotGuessed) {
  EXPECT_EQ(RandomName().size(), 32U);
  EXPECT_NE(RandomName(), RandomName());
}

}  // namespace
}  // namespace lockstep::live_site
