#include "node/live/job_tracker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/nanoseconds.h"

namespace lockstep::live {
namespace {

constexpr int64_t kEpoch = 1'700'000'000 * kSecondNs;

/// What a daemon would say of a rank that has ended `steps` steps of `step_s` of which `communication_s` exposed.
std::string RankText(const std::string& job, int rank, const std::string& host, double steps, double step_s,
                     double communication_s, double progress_unix_s, int pid = 100) {
  const std::string labels = fmt::format("job_id=\"{}\",rank=\"{}\",host=\"{}\"", job, rank, host);
  std::string text = fmt::format("lockstep_rank_info{{{},pid=\"{}\",local_rank=\"{}\"}} 1\n", labels, pid + rank, rank);
  text += fmt::format("lockstep_steps_total{{{}}} {}\n", labels, steps);
  text += fmt::format("lockstep_step_seconds_total{{{}}} {}\n", labels, steps * step_s);
  text += fmt::format("lockstep_step_phase_seconds_total{{{},phase=\"forward\"}} {}\n", labels,
                      steps * (step_s - communication_s));
  text += fmt::format("lockstep_step_phase_seconds_total{{{},phase=\"comm_exposed\"}} {}\n", labels,
                      steps * communication_s);
  text += fmt::format("lockstep_rank_last_progress_timestamp_seconds{{{}}} {:.6f}\n", labels, progress_unix_s);
  return text;
}

NodeLook Look(const std::string& host, int64_t taken_ns, const std::string& text) {
  NodeLook look;
  look.host = host;
  look.taken_ns = taken_ns;
  look.clock_offset_ns = 0;
  look.reading = ReadNodeMetrics(text, "");
  return look;
}

NodeLook NoAnswer(const std::string& host, int64_t taken_ns) {
  NodeLook look;
  look.host = host;
  look.taken_ns = taken_ns;
  look.error = Error{ErrorCode::kNotFound, "nobody listens"};
  return look;
}

class JobTrackerTest : public testing::Test {
 protected:
  template <typename... Looks>
  View Take(int64_t at_s, Looks... looks) {
    std::vector<NodeLook> all;
    (all.push_back(std::move(looks)), ...);
    return tracker_.Take(std::move(all), at_s * kSecondNs, kEpoch + at_s * kSecondNs);
  }
  static double At(double s) { return 1'700'000'000 + s; }

  JobTracker tracker_{10 * kSecondNs, true};
};

TEST_F(JobTrackerTest, RatesAreOfWhatHappenedBetweenLooks) {
  Take(100, Look("n", 100 * kSecondNs, RankText("j", 0, "n", 10, 0.1, 0.02, At(99.95))));
  // 20 steps have ended, the last 2.0 s after the one before; when we looked does not matter.
  const View view = Take(103, Look("n", 103 * kSecondNs, RankText("j", 0, "n", 30, 0.1, 0.02, At(101.95))));
  ASSERT_EQ(view.jobs.size(), 1U);
  const RankView& rank = view.jobs[0].ranks.at(0);
  EXPECT_DOUBLE_EQ(*rank.steps_per_s, 10);
  EXPECT_NEAR(static_cast<double>(*rank.step_ns), 1e8, 2);
  EXPECT_NEAR(*rank.communication_ratio, 0.2, 1e-9);
  EXPECT_NEAR(*rank.compute_ratio, 0.8, 1e-9);
  EXPECT_NEAR(static_cast<double>(*rank.own_ns), 8e7, 2);
  EXPECT_NEAR(static_cast<double>(*rank.progress_age_ns), 1.05e9, 1e3);
  EXPECT_FALSE(rank.is_since_start);
  EXPECT_EQ(rank.state, RankState::kRuns);
  EXPECT_EQ(rank.mfu_ratio, std::nullopt);
  EXPECT_EQ(rank.gpu, std::nullopt);
  EXPECT_EQ(view.jobs[0].step_history, std::vector<int64_t>{*rank.step_ns});
}

TEST_F(JobTrackerTest, AnEngineIsThereWithoutARankAndItsPreemptionsHaveARate) {
  const auto text = [](double preemptions, double waiting) {
    const char* labels = "job_id=\"n:8000\",model=\"m\",engine=\"vllm\"";
    return fmt::format(
        "lockstep_serving_requests_total{{{0}}} 5\n"
        "lockstep_serving_preemptions_total{{{0}}} {1}\n"
        "lockstep_serving_requests_waiting{{{0}}} {2}\n",
        labels, preemptions, waiting);
  };
  const View before = Take(100, Look("n", 100 * kSecondNs, text(10, 1)));
  EXPECT_EQ(before.jobs.at(0).serving.at(0).preemptions_per_s, std::nullopt);
  const View view = Take(104, Look("n", 104 * kSecondNs, text(12, 3)));
  ASSERT_EQ(view.jobs.size(), 1U);
  EXPECT_EQ(view.jobs[0].job_id, "n:8000");
  EXPECT_TRUE(view.jobs[0].ranks.empty());
  const ServingView& serving = view.jobs[0].serving.at(0);
  EXPECT_EQ(serving.preemptions_per_s, 0.5);
  EXPECT_EQ(serving.reading.waiting, 3);
  EXPECT_EQ(serving.requests_per_s, 0);
  // It was started anew.
  const View anew = Take(106, Look("n", 106 * kSecondNs, text(1, 0)));
  EXPECT_EQ(anew.jobs.at(0).serving.at(0).preemptions_per_s, std::nullopt);
}

TEST_F(JobTrackerTest, PortsHaveRates) {
  const auto text = [](double received, double errors) {
    return fmt::format(
        "lockstep_ib_port_active{{host=\"n\",device=\"mlx5_0\",port=\"1\"}} 1\n"
        "lockstep_ib_port_receive_bytes_total{{host=\"n\",device=\"mlx5_0\",port=\"1\"}} {}\n"
        "lockstep_ib_port_errors_total{{host=\"n\",device=\"mlx5_0\",port=\"1\",error=\"symbol\"}} {}\n",
        received, errors);
  };
  EXPECT_EQ(Take(100, Look("n", 100 * kSecondNs, text(1000, 3))).nodes.at(0).ports.at(0).received_per_s, std::nullopt);
  const View view = Take(102, Look("n", 102 * kSecondNs, text(5000, 3)));
  const PortView& port = view.nodes.at(0).ports.at(0);
  EXPECT_EQ(port.device, "mlx5_0");
  EXPECT_EQ(port.received_per_s, 2000);
  EXPECT_EQ(port.errors_per_s, 0);
  EXPECT_EQ(port.transmitted_per_s, std::nullopt);
}

TEST_F(JobTrackerTest, TheFirstLookHasMeansSinceTheRankBegan) {
  const View view = Take(100, Look("n", 100 * kSecondNs, RankText("j", 0, "n", 10, 0.5, 0.1, At(99))));
  const RankView& rank = view.jobs.at(0).ranks.at(0);
  EXPECT_TRUE(rank.is_since_start);
  EXPECT_NEAR(static_cast<double>(*rank.step_ns), 5e8, 2);
  EXPECT_NEAR(*rank.communication_ratio, 0.2, 1e-9);
}

TEST_F(JobTrackerTest, ACounterThatGoesBackGivesNoRate) {
  Take(100, Look("n", 100 * kSecondNs, RankText("j", 0, "n", 1000, 0.1, 0, At(99))));
  View view = Take(101, Look("n", 101 * kSecondNs, RankText("j", 0, "n", 3, 0.2, 0, At(100.9))));
  const RankView* rank = &view.jobs.at(0).ranks.at(0);
  EXPECT_TRUE(rank->is_since_start);
  EXPECT_NEAR(static_cast<double>(*rank->step_ns), 2e8, 2);  // Of the three since.
  view = Take(102, Look("n", 102 * kSecondNs, RankText("j", 0, "n", 8, 0.2, 0, At(101.9))));
  rank = &view.jobs.at(0).ranks.at(0);
  EXPECT_DOUBLE_EQ(*rank->steps_per_s, 5);
  // One counter alone that goes back says nothing of the others.
  const std::string tokens = "lockstep_tokens_total{job_id=\"j\",rank=\"0\",host=\"n\"} ";
  Take(103, Look("n", 103 * kSecondNs, RankText("j", 0, "n", 13, 0.2, 0, At(102.9)) + tokens + "500\n"));
  view = Take(113, Look("n", 113 * kSecondNs, RankText("j", 0, "n", 63, 0.2, 0, At(112.9)) + tokens + "100\n"));
  EXPECT_EQ(view.jobs.at(0).ranks.at(0).tokens_per_s, std::nullopt);
  EXPECT_NEAR(*view.jobs.at(0).ranks.at(0).steps_per_s, 5, 1e-9);
}

TEST_F(JobTrackerTest, AnotherProcessOfTheRankBeginsAnew) {
  Take(100, Look("n", 100 * kSecondNs, RankText("j", 0, "n", 10, 0.1, 0, At(99), 100)));
  const View view = Take(101, Look("n", 101 * kSecondNs, RankText("j", 0, "n", 30, 0.1, 0, At(100), 200)));
  EXPECT_TRUE(view.jobs.at(0).ranks.at(0).is_since_start);
  EXPECT_TRUE(view.jobs.at(0).step_history.empty());
}

TEST_F(JobTrackerTest, SlowStepsAreComparedBeyondTheWindow) {
  Take(0, Look("n", 0, RankText("j", 0, "n", 1, 60, 0, At(0))));
  for (int64_t s = 1; s < 60; ++s) Take(s, Look("n", s * kSecondNs, RankText("j", 0, "n", 1, 60, 0, At(0))));
  const View view = Take(61, Look("n", 61 * kSecondNs, RankText("j", 0, "n", 2, 60, 0, At(60))));
  const RankView& rank = view.jobs.at(0).ranks.at(0);
  EXPECT_FALSE(rank.is_since_start);
  EXPECT_NEAR(*rank.steps_per_s, 1.0 / 60, 1e-9);
  EXPECT_EQ(rank.state, RankState::kRuns);
}

TEST_F(JobTrackerTest, TheSlowRankIsNamedAndWaitedFor) {
  const auto text = [](double steps, double at) {
    return RankText("j", 0, "n", steps, 0.1, 0.06, at) + RankText("j", 1, "n", steps, 0.1, 0.0, at) +
           RankText("j", 2, "n", steps, 0.1, 0.05, at);
  };
  Take(100, Look("n", 100 * kSecondNs, text(10, At(100))));
  const View view = Take(101, Look("n", 101 * kSecondNs, text(20, At(101))));
  const JobView& job = view.jobs.at(0);
  EXPECT_EQ(job.slowest_rank, "1");
  EXPECT_NEAR(*job.slowest_ratio, 2, 1e-6);  // 100 ms of its own against 50.
  EXPECT_EQ(job.ranks[0].state, RankState::kWaits);
  EXPECT_EQ(job.ranks[0].waits_for_rank, "1");
  EXPECT_EQ(job.ranks[1].state, RankState::kSlow);
  EXPECT_EQ(job.ranks[1].waits_for_rank, std::nullopt);
  EXPECT_TRUE(IsWorse(job.ranks[1], job.ranks[0]));
  EXPECT_TRUE(IsWorse(job.ranks[2], job.ranks[0]));  // More of its own.
  std::vector<std::string> kinds;
  for (const Alarm& alarm : job.alarms) kinds.push_back(alarm.kind);
  EXPECT_THAT(kinds, testing::ElementsAre("exposed_communication", "straggler"));
}

TEST_F(JobTrackerTest, AStuckJobWaitsForWhoIsFurthestBehind) {
  const auto text = [](double far, double near) {
    return RankText("j", 0, "n", far, 0.1, 0, At(100)) + RankText("j", 1, "n", near, 0.1, 0, At(99.9));
  };
  Take(100, Look("n", 100 * kSecondNs, text(9, 9)));
  Take(101, Look("n", 101 * kSecondNs, text(20, 19)));
  View view = Take(110, Look("n", 110 * kSecondNs, text(20, 19)));
  const JobView* job = &view.jobs.at(0);
  EXPECT_EQ(job->ranks[0].state, RankState::kStuck);
  EXPECT_EQ(job->ranks[0].waits_for_rank, "1");
  EXPECT_EQ(job->ranks[1].behind_steps, 1U);
  EXPECT_EQ(job->ranks[1].waits_for_rank, std::nullopt);
  EXPECT_EQ(job->ranks[0].steps_per_s, 0);
  EXPECT_TRUE(job->alarms.empty());  // Not yet: two minutes.
  view = Take(300, Look("n", 300 * kSecondNs, text(20, 19)));
  ASSERT_FALSE(view.jobs.at(0).alarms.empty());
  EXPECT_EQ(view.jobs.at(0).alarms[0].kind, "no_progress");
  EXPECT_EQ(view.jobs.at(0).alarms[0].severity, AlarmSeverity::kCritical);
}

TEST_F(JobTrackerTest, OfAStuckJobThePhasesSayWhoDoesNotWait) {
  const auto text = [](std::vector<std::pair<std::string, int>> phases) {
    std::string all;
    for (size_t i = 0; i < phases.size(); ++i) {
      const int rank = static_cast<int>(i);
      all += RankText("j", rank, "n", 20, 0.1, 0, At(100));
      if (phases[i].first.empty()) continue;
      all += fmt::format("lockstep_rank_long_phase_seconds{{job_id=\"j\",rank=\"{}\",host=\"n\",phase=\"{}\"}} {}\n",
                         rank, phases[i].first, phases[i].second);
    }
    return all;
  };
  Take(100, Look("n", 100 * kSecondNs, text({{"", 0}, {"", 0}, {"", 0}})));
  View view =
      Take(300, Look("n", 300 * kSecondNs, text({{"comm_exposed", 199}, {"input", 200}, {"comm_exposed", 198}})));
  const JobView* job = &view.jobs.at(0);
  EXPECT_EQ(job->ranks[0].waits_for_rank, "1");
  EXPECT_EQ(job->ranks[1].waits_for_rank, std::nullopt);
  EXPECT_EQ(job->ranks[2].waits_for_rank, "1");
  EXPECT_EQ(PhaseWords(job->ranks[1]), "has been in input");
  EXPECT_EQ(job->ranks[1].open_phase_ns, 200 * kSecondNs);
  EXPECT_TRUE(IsWorse(job->ranks[1], job->ranks[0])) << "it is what to look at first";
  EXPECT_EQ(job->alarms.at(0).text, "no rank has ended a step for 200 s; rank 1 has been in input for 200 s");
  EXPECT_EQ(job->alarms.at(0).rank, "1");
  // Two that do not wait may have one cause: neither is named alone.
  view = Take(301, Look("n", 301 * kSecondNs,
                        text({{"comm_exposed", 9}, {"input", 9}, {"checkpoint", 8}, {"comm_exposed", 9}})));
  EXPECT_EQ(view.jobs.at(0).ranks[0].waits_for_rank, std::nullopt);
  EXPECT_THAT(view.jobs.at(0).alarms.at(0).text,
              testing::EndsWith("; rank 1 has been in input for 9 s, rank 2 has been in checkpoint for 8 s"));
  // A device's queue is full on all ranks: nothing is known of who waits.
  view = Take(302, Look("n", 302 * kSecondNs, text({{"forward", 9}, {"forward", 9}, {"comm_exposed", 9}})));
  EXPECT_EQ(view.jobs.at(0).ranks[2].waits_for_rank, std::nullopt);
}

TEST_F(JobTrackerTest, ACollectiveThatOneRankHasNotEnteredNamesIt) {
  const auto group = [](int rank, int enqueued) {
    return fmt::format(
        "lockstep_collective_enqueued_total{{job_id=\"j\",rank=\"{0}\",pg=\"p\"}} {1}\n"
        "lockstep_collective_oldest_inflight_seconds{{job_id=\"j\",rank=\"{0}\",pg=\"p\"}} 70\n",
        rank, enqueued);
  };
  const View view = Take(100, Look("n", 100 * kSecondNs, group(0, 8) + group(1, 7) + group(2, 8)));
  const JobView& job = view.jobs.at(0);
  EXPECT_EQ(job.ranks[0].waits_for_rank, "1");
  EXPECT_EQ(job.ranks[1].waits_for_rank, std::nullopt);
  EXPECT_EQ(job.ranks[2].waits_for_rank, "1");
  ASSERT_FALSE(job.alarms.empty());
  EXPECT_EQ(job.alarms[0].kind, "collective_stuck");
}

TEST_F(JobTrackerTest, ANodeThatFallsSilentKeepsWhatItSaidMarked) {
  const auto a = [](double steps, double at) { return RankText("j", 0, "a", steps, 0.1, 0, at); };
  const auto b = [](double steps, double at) { return RankText("j", 1, "b", steps, 0.2, 0, at); };
  Take(100, Look("a", 100 * kSecondNs, a(10, At(100))), Look("b", 100 * kSecondNs, b(10, At(100))));
  Take(101, Look("a", 101 * kSecondNs, a(20, At(101))), Look("b", 101 * kSecondNs, b(15, At(101))));
  View view = Take(103, Look("a", 103 * kSecondNs, a(40, At(103))), NoAnswer("b", 103 * kSecondNs));
  EXPECT_EQ(view.answered_count(), 1U);
  EXPECT_EQ(view.nodes[1].silent_ns, 2 * kSecondNs);
  const JobView& job = view.jobs.at(0);
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_EQ(job.ranks[1].state, RankState::kUnheard);
  EXPECT_EQ(job.ranks[1].step_count, 15U);
  EXPECT_NEAR(*job.steps_per_s, 10, 1e-9);  // Of those that are heard.
  EXPECT_TRUE(IsWorse(job.ranks[1], job.ranks[0]));
  view = Take(104, Look("a", 104 * kSecondNs, a(50, At(104))), Look("b", 104 * kSecondNs, b(30, At(104))));
  EXPECT_EQ(view.jobs.at(0).ranks[1].behind_steps, 20U);
  EXPECT_NE(view.jobs.at(0).ranks[1].state, RankState::kUnheard);
}

TEST_F(JobTrackerTest, ARankThatRunsElsewhereIsNotThatOfADeadNode) {
  const std::string size = "lockstep_job_world_size{job_id=\"j\"} 2\n";
  const std::string zero = RankText("j", 0, "a", 10, 0.1, 0, At(100)) + size;
  const std::string one = RankText("j", 1, "b", 10, 0.1, 0, At(100)) + size;
  Take(100, Look("a", 100 * kSecondNs, zero), Look("b", 100 * kSecondNs, one), Look("c", 100 * kSecondNs, ""));
  View view =
      Take(101, Look("a", 101 * kSecondNs, zero), NoAnswer("b", 101 * kSecondNs), Look("c", 101 * kSecondNs, ""));
  EXPECT_EQ(view.jobs.at(0).ranks.at(1).state, RankState::kUnheard);
  // The job was started anew, with another node in the place of the one that died.
  view = Take(102, Look("a", 102 * kSecondNs, zero), NoAnswer("b", 102 * kSecondNs),
              Look("c", 102 * kSecondNs, RankText("j", 1, "c", 1, 0.1, 0, At(102)) + size));
  ASSERT_EQ(view.jobs.at(0).ranks.size(), 2U);
  EXPECT_EQ(view.jobs[0].ranks[1].host, "c");
}

TEST_F(JobTrackerTest, RanksOfADeadNodeAreNoneOfASmallerJob) {
  const auto text = [](int rank, const char* host, int size) {
    return RankText("j", rank, host, 10, 0.1, 0, At(100)) +
           fmt::format("lockstep_job_world_size{{job_id=\"j\"}} {}\n", size);
  };
  Take(100, Look("a", 100 * kSecondNs, text(0, "a", 2)), Look("b", 100 * kSecondNs, text(1, "b", 2)));
  View view = Take(101, Look("a", 101 * kSecondNs, text(0, "a", 2)), NoAnswer("b", 101 * kSecondNs));
  EXPECT_EQ(view.jobs.at(0).ranks.size(), 2U);
  view = Take(102, Look("a", 102 * kSecondNs, text(0, "a", 1)), NoAnswer("b", 102 * kSecondNs));
  EXPECT_EQ(view.jobs.at(0).ranks.size(), 1U);
  EXPECT_EQ(view.jobs[0].world_size, 1U);
  EXPECT_THAT(view.jobs[0].alarms, testing::IsEmpty());
}

TEST_F(JobTrackerTest, AJobThatHasEndedElsewhereGoesFromADeadNodeToo) {
  const std::string zero = RankText("j", 0, "a", 10, 0.1, 0, At(100));
  const std::string one = RankText("j", 1, "b", 10, 0.1, 0, At(100));
  Take(100, Look("a", 100 * kSecondNs, zero), Look("b", 100 * kSecondNs, one));
  Take(101, Look("a", 101 * kSecondNs, zero), NoAnswer("b", 101 * kSecondNs));
  // It may be only a moment in which b is not heard.
  EXPECT_EQ(Take(102, Look("a", 102 * kSecondNs, ""), NoAnswer("b", 102 * kSecondNs)).jobs.size(), 1U);
  EXPECT_TRUE(Take(170, Look("a", 170 * kSecondNs, ""), NoAnswer("b", 170 * kSecondNs)).jobs.empty());
}

TEST_F(JobTrackerTest, AJobOfWhichNoNodeIsHeardStays) {
  const std::string zero = RankText("j", 0, "a", 10, 0.1, 0, At(100));
  Take(100, Look("a", 100 * kSecondNs, zero), Look("b", 100 * kSecondNs, ""));
  const View view = Take(900, NoAnswer("a", 900 * kSecondNs), Look("b", 900 * kSecondNs, ""));
  ASSERT_EQ(view.jobs.size(), 1U);
  EXPECT_EQ(view.jobs[0].ranks.at(0).state, RankState::kUnheard);
}

TEST_F(JobTrackerTest, ALookWithoutNewsLeavesAllAsItWas) {
  Take(100, Look("a", 100 * kSecondNs, RankText("j", 0, "a", 10, 0.1, 0, At(100))));
  NodeLook look;
  look.host = "a";
  look.taken_ns = 101 * kSecondNs;
  look.is_news = false;
  const View view = Take(101, look);
  EXPECT_EQ(view.answered_count(), 1U);
  ASSERT_EQ(view.jobs.size(), 1U);
  EXPECT_EQ(view.jobs[0].ranks.at(0).state, RankState::kRuns);
}

TEST_F(JobTrackerTest, ANodeThatNeverAnsweredHasNothing) {
  const View view = Take(100, NoAnswer("a", 100 * kSecondNs));
  EXPECT_EQ(view.answered_count(), 0U);
  EXPECT_TRUE(view.jobs.empty());
  EXPECT_EQ(view.nodes.at(0).silent_ns, std::nullopt);
}

TEST_F(JobTrackerTest, ARankThatHasEndedIsToldOfWhileTheOthersGoOn) {
  const std::string zero = RankText("j", 0, "n", 10, 0.1, 0, At(100));
  const std::string one = RankText("j", 1, "n", 10, 0.1, 0, At(100));
  Take(100, Look("n", 100 * kSecondNs, zero + one + "lockstep_job_world_size{job_id=\"j\"} 2\n"));
  const View view = Take(101, Look("n", 101 * kSecondNs, zero + "lockstep_job_world_size{job_id=\"j\"} 2\n"));
  const JobView& job = view.jobs.at(0);
  EXPECT_THAT(job.missing_ranks, testing::ElementsAre(1U));
  ASSERT_EQ(job.alarms.size(), 1U);
  EXPECT_EQ(job.alarms[0].kind, "rank_gone");
  EXPECT_EQ(job.alarms[0].rank, "1");
  EXPECT_TRUE(Take(102, Look("n", 102 * kSecondNs, "")).jobs.empty());
}

TEST_F(JobTrackerTest, RanksOfTwoJobsAreApart) {
  const auto text = [](double steps, double at) {
    return RankText("a", 0, "n", steps, 0.1, 0, at) + RankText("b", 0, "n", 2 * steps, 0.05, 0, at, 200);
  };
  Take(100, Look("n", 100 * kSecondNs, text(10, At(100))));
  const View view = Take(101, Look("n", 101 * kSecondNs, text(20, At(101))));
  ASSERT_EQ(view.jobs.size(), 2U);
  EXPECT_EQ(view.jobs[0].job_id, "a");
  EXPECT_NEAR(*view.jobs[0].steps_per_s, 10, 1e-9);
  EXPECT_NEAR(*view.jobs[1].steps_per_s, 20, 1e-9);
  EXPECT_EQ(view.jobs[0].ranks[0].behind_steps, 0U);
}

TEST_F(JobTrackerTest, WhatTwoDaemonsOfAMachineSayCountsOnce) {
  const std::string text = RankText("j", 0, "n", 10, 0.1, 0, At(100));
  View view = Take(100, Look("n", 100 * kSecondNs, text), Look("n", 100 * kSecondNs, text));
  EXPECT_EQ(view.jobs.at(0).ranks.size(), 1U);
  // The one that still answers is believed.
  view = Take(101, NoAnswer("n", 101 * kSecondNs), Look("n", 101 * kSecondNs, text));
  ASSERT_EQ(view.jobs.at(0).ranks.size(), 1U);
  EXPECT_NE(view.jobs[0].ranks[0].state, RankState::kUnheard);
}

TEST_F(JobTrackerTest, RequestsPerSecondAndTheShareThatFailed) {
  const auto text = [](int requests, int failures) {
    return fmt::format(
        "lockstep_serving_requests_total{{job_id=\"j\",model=\"m\",engine=\"e\"}} {}\n"
        "lockstep_serving_request_failures_total{{job_id=\"j\",model=\"m\",engine=\"e\"}} {}\n",
        requests, failures);
  };
  View view = Take(100, Look("n", 100 * kSecondNs, text(10, 0)));
  EXPECT_EQ(view.jobs.at(0).serving.at(0).requests_per_s, std::nullopt);
  view = Take(110, Look("n", 110 * kSecondNs, text(60, 5)));
  EXPECT_DOUBLE_EQ(*view.jobs.at(0).serving.at(0).requests_per_s, 5);
  EXPECT_DOUBLE_EQ(*view.jobs.at(0).serving.at(0).failure_ratio, 0.1);
}

TEST_F(JobTrackerTest, PowerIsTheRateOfEnergyAndBelongsToTheRanksDevice) {
  const auto text = [](double joules) {
    return RankText("j", 0, "n", 1, 0.1, 0, At(100)) + RankText("j", 1, "n", 1, 0.1, 0, At(100)) +
           fmt::format("lockstep_gpu_energy_joules_total{{host=\"n\",gpu=\"1\"}} {}\n", joules);
  };
  View view = Take(100, Look("n", 100 * kSecondNs, text(5000)));
  EXPECT_EQ(view.jobs.at(0).ranks[1].gpu->power_watts, std::nullopt);
  view = Take(102, Look("n", 102 * kSecondNs, text(5600)));
  EXPECT_DOUBLE_EQ(*view.jobs.at(0).ranks[1].gpu->power_watts, 300);
  EXPECT_EQ(view.jobs[0].ranks[0].gpu, std::nullopt);
}

TEST_F(JobTrackerTest, CoresOfAProcessAreItsCpuTimeByTime) {
  const auto text = [](double seconds) {
    return RankText("j", 0, "n", 1, 0.1, 0, At(100)) +
           fmt::format("lockstep_rank_cpu_seconds_total{{job_id=\"j\",rank=\"0\",host=\"n\"}} {}\n", seconds);
  };
  EXPECT_EQ(Take(100, Look("n", 100 * kSecondNs, text(10))).jobs.at(0).ranks.at(0).cpu_cores, std::nullopt);
  const View view = Take(102, Look("n", 102 * kSecondNs, text(13)));
  EXPECT_DOUBLE_EQ(*view.jobs.at(0).ranks.at(0).cpu_cores, 1.5);
  EXPECT_EQ(view.jobs[0].ranks[0].io_read_per_s, std::nullopt);
}

TEST_F(JobTrackerTest, ADriverThatDoesNotAnswerIsNoGpu) {
  const View view = Take(100, Look("n", 100 * kSecondNs,
                                   "lockstep_gpu_unresponsive{host=\"n\",gpu=\"driver\"} 1\n"
                                   "lockstep_gpu_unresponsive{host=\"n\",gpu=\"0\"} 0\n"));
  EXPECT_EQ(view.nodes.at(0).gpus.size(), 1U);
  ASSERT_EQ(view.nodes[0].alarms.size(), 1U);
  EXPECT_EQ(view.nodes[0].alarms[0].kind, "gpu_unresponsive");
}

TEST_F(JobTrackerTest, TwoReasonsForOneSlowdownAreNotMoreThanAllTime) {
  const auto text = [](double seconds) {
    std::string all;
    for (const char* reason : {"thermal", "hw_thermal"}) {
      all += fmt::format("lockstep_gpu_throttle_seconds_total{{host=\"n\",gpu=\"0\",reason=\"{}\"}} {}\n", reason,
                         seconds);
    }
    return all;
  };
  Take(100, Look("n", 100 * kSecondNs, text(0)));
  const View view = Take(102, Look("n", 102 * kSecondNs, text(2)));
  EXPECT_EQ(view.nodes.at(0).gpus.at(0).thermal_throttle_ratio, 1);
  ASSERT_EQ(view.nodes[0].alarms.size(), 1U);
  EXPECT_EQ(view.nodes[0].alarms[0].kind, "gpu_throttled");
}

TEST_F(JobTrackerTest, XidErrorsAreAnAlarmForTenMinutes) {
  const auto text = [](int count) {
    return fmt::format(
        "lockstep_gpu_info{{host=\"n\",gpu=\"0\"}} 1\n"
        "lockstep_gpu_xid_events_total{{host=\"n\",gpu=\"0\",xid=\"13\"}} {}\n",
        count);
  };
  const auto alarms = [&](int64_t at_s, int count) {
    return Take(at_s, Look("n", at_s * kSecondNs, text(count))).nodes.at(0).alarms;
  };
  EXPECT_THAT(alarms(100, 5), testing::IsEmpty());  // From before we looked.
  ASSERT_THAT(alarms(101, 6), testing::SizeIs(1));
  EXPECT_EQ(alarms(102, 6)[0].kind, "gpu_xid");
  EXPECT_THAT(alarms(700, 6), testing::SizeIs(1));
  EXPECT_THAT(alarms(702, 6), testing::IsEmpty());
  // The daemon began anew: what it has counted since is news, however little it is.
  EXPECT_THAT(alarms(703, 0), testing::IsEmpty());
  EXPECT_THAT(alarms(704, 2).at(0).text, testing::HasSubstr("2 Xid errors"));
}

TEST_F(JobTrackerTest, AGpuOfWhichOnlyXidErrorsAreLeftIsNotThere) {
  const std::string xids = "lockstep_gpu_xid_events_total{host=\"n\",gpu=\"0\",xid=\"79\"} ";
  const std::string expected = "lockstep_gpus_expected{host=\"n\"} 1\nlockstep_gpus_visible{host=\"n\"} ";
  const std::string info = "lockstep_gpu_info{host=\"n\",gpu=\"0\",uuid=\"U\"} 1\n";
  const std::string rank = RankText("j", 0, "n", 10, 0.1, 0, At(100));
  View view = Take(100, Look("n", 100 * kSecondNs, rank + info + xids + "0\n" + expected + "1\n"));
  EXPECT_EQ(view.nodes.at(0).gpus.size(), 1U);
  EXPECT_THAT(view.nodes[0].alarms, testing::IsEmpty());
  EXPECT_NE(view.jobs.at(0).ranks.at(0).gpu, std::nullopt);
  view = Take(101, Look("n", 101 * kSecondNs, rank + xids + "1\n" + expected + "0\n"));
  EXPECT_TRUE(view.nodes.at(0).gpus.empty());
  EXPECT_EQ(view.nodes[0].lost_gpus.size(), 1U);
  EXPECT_EQ(view.jobs.at(0).ranks.at(0).gpu, std::nullopt);
  ASSERT_EQ(view.nodes[0].alarms.size(), 2U);
  EXPECT_EQ(view.nodes[0].alarms[0].kind, "gpu_missing");
  EXPECT_EQ(view.nodes[0].alarms[1].kind, "gpu_xid");
}

TEST_F(JobTrackerTest, SenselessNumbersDoNoHarm) {
  const std::string labels = "{job_id=\"j\",rank=\"0\",host=\"n\"} ";
  for (const char* value : {"-5", "1e300", "-1e300", "1e18", "0.5"}) {
    std::string text;
    for (const char* name :
         {"steps_total", "step_seconds_total", "rank_last_progress_timestamp_seconds", "tokens_total",
          "gpu_peak_flops_per_second", "model_flops_total", "torch_memory_reserved_bytes"}) {
      text += std::string("lockstep_") + name + labels + value + "\n";
    }
    text += std::string("lockstep_job_world_size{job_id=\"j\"} ") + value + "\n";
    Take(100, Look("n", 100 * kSecondNs, text));
    const View view = Take(101, Look("n", 101 * kSecondNs, text));
    EXPECT_EQ(view.jobs.size(), 1U) << value;
    EXPECT_LE(view.jobs[0].missing_ranks.size(), 4096U);
  }
}

}  // namespace
}  // namespace lockstep::live
