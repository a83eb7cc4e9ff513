#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// What one process has moved through a Communicator.
struct Traffic {
  uint64_t message_count = 0;  ///< Broadcasts and gathers that it took part in.
  uint64_t sent_bytes = 0;     ///< Own contributions: what it broadcast (once, whatever the number of receivers), gave.
  uint64_t received_bytes = 0;  ///< What reached it.
};

/// Several processes at work on one question, numbered from 0; process 0 is the root, which asks and answers. Calls are
/// collective: every process makes the same ones in the same order. Not thread-safe. A lost process is not reported
/// here: the transport then ends the whole program.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual size_t process() const = 0;
  virtual size_t process_count() const = 0;
  /// The root's bytes replace those of all ranks.
  virtual void Broadcast(std::string* bytes) = 0;
  /// Out: at the root every process's bytes, by process; elsewhere nothing.
  virtual std::vector<std::string> Gather(std::string bytes) = 0;
  virtual Traffic traffic() const = 0;

  bool is_root() const { return process() == 0; }
};

}  // namespace lockstep
