#include "cases.h"

#include <algorithm>
#include <set>

namespace lockstep::hang_test {
namespace {

using hang::VerdictKind;

struct Layout {
  int32_t tensor, pipeline, data;
  int seeds;
};

bool CanHave(const JobShape& shape, Fault fault) {
  // Gloo's unrecorded sends leave open whether an idle rank is in one: then only stacks tell.
  const bool clear = shape.nccl || shape.pipeline == 1 || shape.with_stacks;
  if (!clear && fault != Fault::kNone && fault != Fault::kCrash) {
    return false;
  }
  switch (fault) {
    case Fault::kDeviceStall: return shape.nccl;
    case Fault::kMissingRecv: return shape.pipeline > 1 && (shape.nccl || shape.with_stacks);
    case Fault::kSwap: return shape.data > 1;
    case Fault::kSlow: return !shape.nccl && shape.pipeline == 1 && !shape.active_only && shape.ring > 100;
    case Fault::kCross: return !shape.active_only;
    default: return true;
  }
}

}  // namespace

std::vector<Case> AllCases(uint64_t first_seed) {
  const std::vector<Layout> layouts = {{2, 1, 2, 2}, {1, 1, 4, 2}, {4, 1, 1, 1}, {2, 1, 4, 2},
                                       {2, 2, 2, 2}, {4, 2, 2, 1}, {2, 4, 4, 1}, {8, 1, 8, 1}};
  std::vector<Case> cases;
  uint64_t seed = first_seed;
  for (const Layout& layout : layouts) {
    for (const bool nccl : {false, true}) {
      for (int variant = 0; variant < 3; ++variant) {
        for (int fault = 0; fault < kFaultCount; ++fault) {
          for (int i = 0; i < layout.seeds; ++i) {
            Case made;
            made.fault = static_cast<Fault>(fault);
            made.seed = seed++;
            made.shape.tensor = layout.tensor;
            made.shape.pipeline = layout.pipeline;
            made.shape.data = layout.data;
            made.shape.nccl = nccl;
            made.shape.steps = made.fault == Fault::kSlow ? 8 : 4;
            made.shape.with_frames = variant != 1;
            made.shape.with_stacks = variant == 2;
            made.shape.ring = variant == 1 ? 24 : 2000;
            made.shape.mixed_versions = variant == 1;
            made.shape.active_only = nccl && variant == 2 && made.fault != Fault::kSwap && made.fault != Fault::kExtra;
            made.shape.coalesced = nccl && variant == 0 && made.fault != Fault::kSwap;
            if (CanHave(made.shape, made.fault)) {
              cases.push_back(made);
              if (variant != 1) {
                made.lost = 1 + made.seed % 2;
                cases.push_back(made);
              }
            }
          }
        }
      }
    }
  }
  const Fault kLarge[] = {Fault::kSkip,  Fault::kSize,        Fault::kStuck,
                          Fault::kCrash, Fault::kDeviceStall, Fault::kMissingRecv};
  for (const Fault fault : kLarge) {
    Case made;
    made.fault = fault;
    made.seed = seed++;
    made.shape.tensor = 8;
    made.shape.pipeline = 4;
    made.shape.data = 32;
    made.shape.nccl = true;
    made.shape.steps = 2;
    cases.push_back(made);
  }
  return cases;
}

std::vector<Case> FlatCases(uint64_t first_seed) {
  std::vector<Case> cases;
  uint64_t seed = first_seed;
  for (const Program program : {Program::kDdp, Program::kFsdp}) {
    for (const int32_t world : {2, 3, 4, 6, 8, 16, 32, 64}) {
      for (int recorder = 0; recorder < 3; ++recorder) {
        for (int fault = 0; fault < kFaultCount; ++fault) {
          for (const bool whole : {true, false}) {
            for (const size_t lost : {size_t{0}, size_t{1}}) {
              Case made;
              made.fault = static_cast<Fault>(fault);
              made.lost = lost;
              made.seed = seed++;
              made.shape.program = program;
              made.shape.tensor = 1;
              made.shape.data = world;
              made.shape.steps = 8;
              made.shape.nccl = recorder > 0;
              made.shape.told_starts = recorder > 1;
              made.shape.ring = whole ? 2000 : 24;
              made.shape.with_frames = whole || made.seed % 3 != 0;
              made.shape.active_only = made.shape.nccl && made.seed % 7 == 0;
              made.shape.with_stacks = made.seed % 5 == 0;
              const bool other_program = made.fault == Fault::kCross || made.fault == Fault::kSlow;
              if (!other_program && CanHave(made.shape, made.fault)) cases.push_back(made);
            }
          }
        }
      }
    }
  }
  return cases;
}

BrokenJob RunCase(const Case& of) {
  BrokenJob job = RunBrokenJob(of.shape, of.fault, of.seed);
  if (of.lost > 0) {
    LoseRecords(job, of.lost, of.seed);
  }
  return job;
}

bool IsRight(const Case& of, const BrokenJob& job, const hang::Verdict& verdict) {
  std::set<VerdictKind> kinds;
  const bool blind = !of.shape.nccl && !of.shape.with_frames;
  // Of a program whose calls differ in little but their place or what came before.
  const bool alike = of.shape.program != Program::kMegatron && (!of.shape.with_frames || of.shape.active_only);
  const std::set<VerdictKind> shifts = {VerdictKind::kSkippedCollective, VerdictKind::kExtraCollective,
                                        VerdictKind::kSizeMismatch, VerdictKind::kOperationMismatch};
  std::vector<int32_t> culprits = job.culprits;
  switch (of.fault) {
    case Fault::kNone: kinds = {VerdictKind::kHealthy}; break;
    case Fault::kSkip: kinds = {VerdictKind::kSkippedCollective}; break;
    case Fault::kExtra:
      kinds = {VerdictKind::kExtraCollective};
      if (blind) {
        kinds.insert(VerdictKind::kOperationMismatch);
      }
      break;
    case Fault::kSwap:
      kinds = {VerdictKind::kWrongOrder};
      if (blind) {
        kinds.insert(VerdictKind::kSkippedCollective);
      }
      break;
    case Fault::kOperation: kinds = {VerdictKind::kOperationMismatch}; break;
    case Fault::kSize: kinds = {VerdictKind::kSizeMismatch}; break;
    case Fault::kDtype: kinds = {VerdictKind::kDtypeMismatch}; break;
    case Fault::kStuck: kinds = {VerdictKind::kStuckOutsideCollective}; break;
    case Fault::kDeviceStall: kinds = {VerdictKind::kDeviceStalled}; break;
    case Fault::kCrash: kinds = {VerdictKind::kCrash}; break;
    case Fault::kCross: {
      // Half against half: either order is as right as the other.
      std::vector<int32_t> everybody;
      std::vector<int32_t> first;
      for (int32_t rank = 0; rank < of.shape.World(); ++rank) {
        everybody.push_back(rank);
        if (!std::binary_search(culprits.begin(), culprits.end(), rank)) {
          first.push_back(rank);
        }
      }
      return verdict.kind == VerdictKind::kDeadlock &&
             (verdict.culprit_ranks == everybody || verdict.culprit_ranks == culprits ||
              verdict.culprit_ranks == first);
    }
    case Fault::kMissingRecv: kinds = {VerdictKind::kUnmatchedP2p}; break;
    case Fault::kSlow: kinds = {VerdictKind::kStraggler}; break;
  }
  if (alike && (of.fault == Fault::kSkip || of.fault == Fault::kExtra)) kinds = shifts;
  return kinds.contains(verdict.kind) && verdict.culprit_ranks == culprits && verdict.confidence >= 0.5;
}

bool CanBeTold(const Case& of, const BrokenJob& job) {
  const bool alone = of.fault == Fault::kNone || of.fault == Fault::kStuck || of.fault == Fault::kCrash ||
                     of.fault == Fault::kDeviceStall;
  if (of.shape.World() == 2 && !alone) return false;
  return std::none_of(job.culprits.begin(), job.culprits.end(), [&](int32_t rank) {
    const evidence::RankEvidence& evidence = job.evidence.ranks[static_cast<size_t>(rank)];
    return of.lost > 0 && !evidence.record && evidence.exit_signal == 0;
  });
}

bool AccusesWrongly(const BrokenJob& job, const hang::Verdict& verdict) {
  if (verdict.confidence < 0.5 || verdict.culprit_ranks.empty() || job.fault == Fault::kCross) {
    return false;
  }
  return !std::includes(job.culprits.begin(), job.culprits.end(), verdict.culprit_ranks.begin(),
                        verdict.culprit_ranks.end());
}

}  // namespace lockstep::hang_test
