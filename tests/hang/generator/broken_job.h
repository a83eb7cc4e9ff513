#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/evidence/job_evidence.h"

namespace lockstep::hang_test {

enum class Fault : uint8_t {
  kNone,
  kSkip,       ///< Leaves a collective out.
  kExtra,      ///< Calls one more, from a function of its own.
  kSwap,       ///< Calls two neighbours of one group the other way round.
  kOperation,  ///< Calls another operation from the same line.
  kSize,
  kDtype,
  kStuck,        ///< Never comes back from its data loader.
  kDeviceStall,  ///< Its device stops; NCCL only.
  kCrash,        ///< Ends by SIGKILL.
  kCross,        ///< Half of the ranks use two groups in the other order.
  kMissingRecv,  ///< Leaves a receive out.
  kSlow,         ///< Is late in every step, and the job ends.
};
constexpr int kFaultCount = 13;
const char* FaultName(Fault fault);

/// What a step of the job is made of.
enum class Program : uint8_t {
  kMegatron,  ///< Tensor, pipeline and data parallel groups.
  kDdp,       ///< Gradient buckets in a group of all, then a norm in the default one.
  kFsdp,      ///< Gathers and scatters of weights in a group of all, then norms in the default one.
};

struct JobShape {
  Program program = Program::kMegatron;
  int32_t tensor = 2;    ///< Ranks of a tensor-parallel group.
  int32_t pipeline = 1;  ///< Stages.
  int32_t data = 2;      ///< Replicas.
  bool nccl = false;     ///< Asynchronous, completed by devices; else Gloo: synchronous, nothing else recorded.
  int32_t steps = 4;
  size_t ring = 2000;
  bool with_frames = true;
  bool with_stacks = false;
  bool active_only = false;     ///< As torchrun's dumps of open operations only.
  bool mixed_versions = false;  ///< Every third rank writes an older version's fields.
  bool coalesced = false;       ///< Parameters are gathered in one coalesced launch.
  bool told_starts = false;     ///< NCCL: the recorder tells what has begun on the device.
  int64_t skew_ns = 0;          ///< Over 0: records are made in mid-run, each at a moment of its own within so long.
  bool told_times = true;       ///< With skew_ns: the evidence says when each record was made.
  const char* ProgramName() const {
    return program == Program::kMegatron ? "" : program == Program::kDdp ? " ddp" : " fsdp";
  }
  int32_t World() const { return tensor * pipeline * data; }
};

struct BrokenJob {
  evidence::JobEvidence evidence;
  Fault fault = Fault::kNone;
  std::vector<int32_t> culprits;
  std::string name;  ///< What it is, for a failing test's message.
};

/// Runs a job of `shape` in which `fault` strikes, until nobody can go on or all are done, and writes down what its
/// recorders, /proc, stacks and logs would hold. The same seed gives the same job.
BrokenJob RunBrokenJob(const JobShape& shape, Fault fault, uint64_t seed);

/// Takes the records of `count` random ranks away (files that were lost), and with them stacks and logs.
void LoseRecords(BrokenJob& job, size_t count, uint64_t seed);

}  // namespace lockstep::hang_test
