#include "node/agent/daemon/access.h"

#include <gmock/gmock.h>

#include "node/agent/daemon/access_for_test.h"

namespace lockstep::agent {
namespace {

using http::Peer;
using testing::HasSubstr;
using Outcome = Access::Outcome;

class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    config_.tokens = {{"scraper", Role::kRead, "", {}, "", Digest("token-of-scraper")},
                      {"alice-laptop", Role::kCapture, "alice", 1000, "", Digest("token-of-alice")},
                      {"ops", Role::kAdmin, "", {}, "", Digest("token-of-ops")}};
    config_.certificates = {{"ci.cluster", Role::kCapture, "alice", 1000}, {"root.cluster", Role::kAdmin}};
  }

  Access::Decision Ask(const Peer& peer, std::string_view authorization = "") {
    return Access(config_, &users_, &limiter_).Identify(peer, authorization, now_ns_);
  }
  static Peer Local(uint32_t uid) { return {Peer::Kind::kUnixSocket, uid, "unix"}; }
  static Peer Network(std::string certificate = "", std::string address = "10.0.0.7:4242") {
    return {Peer::Kind::kNetwork, {}, std::move(address), true, std::move(certificate)};
  }

  DaemonConfig config_;
  FakeUsers users_;
  FailureLimiter limiter_;
  int64_t now_ns_ = 0;
};

TEST_F(AccessTest, LocalUsersMayTraceTheirOwnOnly) {
  const Access::Decision decision = Ask(Local(1000));
  EXPECT_EQ(decision.outcome, Outcome::kKnown);
  EXPECT_EQ(decision.identity.role, Role::kCapture);
  EXPECT_EQ(decision.identity.caller.uid, 1000u);
  EXPECT_FALSE(decision.identity.caller.may_trace_all);
  EXPECT_EQ(decision.identity.caller.name, "alice (uid 1000) over the local socket");
}

TEST_F(AccessTest, RootAndTheGroupMayTraceAll) {
  for (const uint32_t uid : {0u, 1001u}) {
    EXPECT_EQ(Ask(Local(uid)).identity.role, Role::kAdmin);
    EXPECT_TRUE(Ask(Local(uid)).identity.caller.may_trace_all);
  }
  config_.capture_group = "";
  EXPECT_FALSE(Ask(Local(1001)).identity.caller.may_trace_all);
}

TEST_F(AccessTest, LoopbackIsJudgedByTheOwnerOfTheOtherEnd) {
  Peer peer{Peer::Kind::kLoopback, 1000, "127.0.0.1:5000"};
  EXPECT_EQ(Ask(peer).identity.role, Role::kCapture);
  peer.uid.reset();
  EXPECT_EQ(Ask(peer).identity.role, Role::kRead);
  EXPECT_FALSE(Ask(peer).identity.caller.uid);
}

TEST_F(AccessTest, TheNetworkNeedsCredentials) {
  EXPECT_EQ(Ask(Network()).outcome, Outcome::kUnknown);
  EXPECT_EQ(Ask(Network(), "Bearer token-of-alice").identity.caller.uid, 1000u);
  EXPECT_EQ(Ask(Network(), "bearer token-of-ops").identity.role, Role::kAdmin);
  EXPECT_TRUE(Ask(Network(), "bearer token-of-ops").identity.caller.may_trace_all);
  EXPECT_EQ(Ask(Network(), "Bearer token-of-scraper").identity.role, Role::kRead);
  EXPECT_FALSE(Ask(Network(), "Bearer token-of-scraper").identity.caller.may_trace_all);
  EXPECT_EQ(Ask(Network("ci.cluster")).identity.caller.name, "certificate ci.cluster for alice from 10.0.0.7:4242");
  EXPECT_EQ(Ask(Network("root.cluster")).identity.role, Role::kAdmin);
  EXPECT_EQ(Ask(Network("other.cluster")).outcome, Outcome::kUnknown);
  for (const char* header : {"Bearer", "Bearer ", "Bearer token-of-alic", "Bearer token-of-alicee", "Basic YTpi",
                             "token-of-alice", "Bearer  token-of-alice"}) {
    EXPECT_EQ(Ask(Network("", std::string("10.0.1.1:") + header), header).outcome, Outcome::kUnknown) << header;
  }
}

TEST_F(AccessTest, AWrongTokenIsNotMadeGoodByACertificateOrALocalUser) {
  EXPECT_EQ(Ask(Network("ci.cluster"), "Bearer wrong").outcome, Outcome::kUnknown);
  EXPECT_EQ(Ask(Local(0), "Bearer wrong").outcome, Outcome::kUnknown);
}

TEST_F(AccessTest, WithoutAuthenticationAnyoneMayDoAnything) {
  config_.insecure_no_auth = true;
  EXPECT_EQ(Ask(Network()).identity.role, Role::kAdmin);
  EXPECT_THAT(Ask(Network()).identity.caller.name, HasSubstr("insecure"));
}

TEST_F(AccessTest, ManyFailuresFromOnePlaceAreLimitedThereAlone) {
  for (int i = 0; i < FailureLimiter::kAttempts; ++i) {
    EXPECT_EQ(Ask(Network("", "10.0.0.7:" + std::to_string(i)), "Bearer x").outcome, Outcome::kUnknown);
  }
  EXPECT_EQ(Ask(Network(), "Bearer x").outcome, Outcome::kLimited);
  EXPECT_EQ(Ask(Network(), "Bearer token-of-ops").outcome, Outcome::kKnown);
  EXPECT_EQ(Ask(Network("", "10.0.0.8:1"), "Bearer x").outcome, Outcome::kUnknown);
  now_ns_ += FailureLimiter::kWindowNs;
  EXPECT_EQ(Ask(Network(), "Bearer x").outcome, Outcome::kUnknown);
}

TEST(FailureLimiterTest, RemembersABoundedNumberOfPlaces) {
  FailureLimiter limiter;
  for (int i = 0; i < FailureLimiter::kAttempts; ++i) limiter.Fail("first", 0);
  EXPECT_FALSE(limiter.Allows("first", 1));
  for (size_t i = 0; i < FailureLimiter::kSources; ++i) limiter.Fail("other" + std::to_string(i), 1);
  EXPECT_TRUE(limiter.Allows("first", 1));
}

}  // namespace
}  // namespace lockstep::agent
