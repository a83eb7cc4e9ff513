// The elements at the end of traceEvents: metadata rows, the capture window, markers.

#include <string>

#include "generator/event_writer.h"

namespace lockstep::tracegen {

void EventWriter::MetadataRow(std::string_view name, std::string_view pid, int64_t tid, std::string_view args_key,
                              std::string_view json) {
  BeginElement();
  Key(layout_.open, "\"name\"");
  text_->Put(name);
  Key(layout_.same, "\"ph\"");
  text_->Put("\"M\"");
  Key(layout_.same, "\"ts\"");
  Time(job_.start_ns);
  Key(layout_.same, "\"pid\"");
  text_->Put(pid);
  Key(layout_.same, "\"tid\"");
  text_->PutInt(tid);
  Key(layout_.next, "\"args\"");
  text_->Put(layout_.args_open);
  first_argument_ = true;
  ArgumentRaw(args_key, json);
  text_->Put(layout_.args_close);
  EndElement(false);
}

void EventWriter::Closing() {
  argument_separator_ = layout_.host_argument;
  const std::string process = std::to_string(process_id_);
  MetadataRow("\"process_name\"", process, 0, "\"name\"", "\"python3\"");
  MetadataRow("\"process_labels\"", process, 0, "\"labels\"", "\"CPU\"");
  MetadataRow("\"process_sort_index\"", process, 0, "\"sort_index\"", process);
  for (int lane = 0; lane < 2; ++lane) {
    const int64_t tid = ThreadId(static_cast<uint8_t>(lane));
    MetadataRow("\"thread_name\"", process, tid, "\"name\"", "\"thread " + std::to_string(tid) + " (python3)\"");
  }
  for (int64_t device = 0; device < (spec_.cpu_only ? 0 : 16); ++device) {
    const std::string pid = std::to_string(device);
    MetadataRow("\"process_name\"", pid, 0, "\"name\"", "\"python3\"");
    MetadataRow("\"process_labels\"", pid, 0, "\"labels\"", "\"GPU " + pid + "\"");
  }
  LogEvent window;
  window.start_ns = job_.start_ns;
  window.duration_ns = job_.end_ns - job_.start_ns;
  BeginElement();
  Key(layout_.open, "\"ph\"");
  text_->Put("\"X\"");
  Key(layout_.same, "\"cat\"");
  text_->Put("\"Trace\"");
  Key(layout_.same, "\"ts\"");
  Time(window.start_ns);
  Key(layout_.same, "\"dur\"");
  Micros(window.duration_ns);
  Key(layout_.next, "\"pid\"");
  text_->Put("\"Spans\"");
  Key(layout_.same, "\"tid\"");
  text_->Put("\"PyTorch Profiler\"");
  Key(layout_.next, "\"name\"");
  text_->Put("\"PyTorch Profiler (0)\"");
  Key(layout_.next, "\"args\"");
  text_->Put(layout_.args_open);
  first_argument_ = true;
  Argument("\"Op count\"", 0);
  EndComplete();
  BeginElement();
  Key(layout_.open, "\"name\"");
  text_->Put("\"Record Window End\"");
  Key(layout_.same, "\"ph\"");
  text_->Put("\"i\"");
  Key(layout_.same, "\"s\"");
  text_->Put("\"g\"");
  Key(layout_.next, "\"pid\"");
  text_->Put("\"\"");
  Key(layout_.same, "\"tid\"");
  text_->Put("\"\"");
  Key(layout_.same, "\"ts\"");
  Time(job_.end_ns);
  EndElement(false);
}

}  // namespace lockstep::tracegen
