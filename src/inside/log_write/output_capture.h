#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "inside/log_write/line_cutter.h"
#include "inside/log_write/log_sink.h"
#include "model/log_line/level.h"
#include "model/log_line/line.h"

namespace lockstep::logs {

/// Takes what a command writes to standard output and error, passes it on, and writes it to a log with times. Passing
/// on is unbuffered and comes first; writing has a thread of its own and a queue with a bound, so that a slow disk
/// loses lines of the log (counted, and said) and holds the command up for half a second at most. Signals go to none of
/// its threads.
class OutputCapture {
 public:
  /// `console`: where both streams go on to; -1: nowhere. Borrowed.
  struct Console {
    int output = -1;
    int error = -1;
  };
  /// Errors: kIo where there is no pipe.
  static Result<std::unique_ptr<OutputCapture>> Start(LogSink sink, const Console& console);
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  /// What becomes the command's streams.
  int output_fd() const { return streams_[0].writer.get(); }
  int error_fd() const { return streams_[1].writer.get(); }

  /// The command has ended: takes what the pipes still hold. Where others have them open yet (processes that the
  /// command left behind) a process in the background goes on in our place, so that they never find the pipe closed.
  /// Takes 0.2 s at most, and 10 s where the disk does not answer: then what is left is lost.
  void Finish();

 private:
  struct Stream {
    const char* source = "";
    UniqueFd reader;
    UniqueFd writer;
    int console = -1;
  };
  struct Chunk {
    size_t stream = 0;
    LineTime time;
    std::string bytes;
  };
  /// What the writing thread needs: it may outlive this where the disk hangs.
  struct Writing {
    explicit Writing(LogSink log) : sink(std::move(log)) {}
    void Run();
    void Write(const Chunk& chunk);
    /// A line that has a head of ours, of a logger in the program, keeps what that says.
    void Append(const LineTime& time, size_t stream, std::string_view line);
    void End();

    Mutex mutex;
    std::condition_variable_any changed;
    std::condition_variable_any taken;
    std::deque<Chunk> queue LOCKSTEP_GUARDED_BY(mutex);
    size_t queued_bytes LOCKSTEP_GUARDED_BY(mutex) = 0;
    uint64_t lost_lines LOCKSTEP_GUARDED_BY(mutex) = 0;
    /// The queue was full for too long; writers do not wait until it has been emptied.
    bool is_stuck LOCKSTEP_GUARDED_BY(mutex) = false;
    bool is_closed LOCKSTEP_GUARDED_BY(mutex) = false;
    bool is_done LOCKSTEP_GUARDED_BY(mutex) = false;
    LogSink sink;  ///< The rest is the writing thread's.
    std::array<LineCutter, 2> cutters;
    std::array<LevelReader, 2> levels;
    std::string storage;
  };

  explicit OutputCapture(LogSink sink) : writing_(std::make_shared<Writing>(std::move(sink))) {}
  void ReadAll();
  /// False: at its end, or nothing is there now.
  bool ReadSome(size_t stream);
  void PassOn(Stream& stream, std::string_view bytes);
  bool is_open() const { return streams_[0].reader.valid() || streams_[1].reader.valid(); }
  void GoOnInBackground();

  std::shared_ptr<Writing> writing_;
  std::array<Stream, 2> streams_;
  UniqueFd stop_;
  std::thread reading_thread_;
  std::thread writing_thread_;
};

}  // namespace lockstep::logs
