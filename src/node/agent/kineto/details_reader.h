#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "node/proc/process_details.h"

namespace lockstep::agent {

/// Looks processes up on threads of its own. A process can block a reader of its memory through /proc (its arguments
/// may lie on a file system that never answers). A look-up that hangs is therefore abandoned: the process gets only the
/// facts that cannot hang, another thread takes over, and further processes of the user get no more than that.
class DetailsReader {
 public:
  struct Job {
    uint64_t serial = 0;
    int32_t pid = 0;
    uint32_t uid = 0;
    bool refresh = false;             ///< Only what changes: the device, and the name of a worker.
    proc::ProcessDetails known = {};  ///< With `refresh`: what was found before.
    int64_t seen_boottime_ns = 0;     ///< The process was there then: a later one with its pid is another.
  };
  /// Called from one of its threads, or from Tick. `gone`: there is no such process.
  using Done = std::function<void(uint64_t serial, proc::ProcessDetails details, bool gone)>;

  /// Looks one up; `briefly`: only what cannot hang. Nullopt: there is no such process.
  using Look = std::function<std::optional<proc::ProcessDetails>(const Job& job, bool briefly)>;
  /// By reading /proc.
  static Look LookInto(std::string proc_root);

  DetailsReader(Look look, Done done, int64_t hang_ns = 5'000'000'000);
  /// No `Done` is called after this. Waits two seconds at most for what is under way.
  ~DetailsReader();

  void Request(Job job);
  /// Looks after hanging look-ups; call it each second while there are any.
  void Tick(int64_t now_monotonic_ns);
  /// Look-ups that hang just now.
  int hanging_count() const;

 private:
  struct Shared;
  static void Work(std::shared_ptr<Shared> shared);
  static void StartThread(const std::shared_ptr<Shared>& shared);

  // Shared with the threads: one that hangs outlives this.
  std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep::agent
