#include "generator/event_writer.h"

#include "generator/job_clock.h"
#include "generator/json_writer.h"
#include "generator/rank_simulator.h"

namespace lockstep::tracegen {
namespace {

constexpr size_t kElementBytes = 8192;  // No element is larger.
constexpr std::string_view kExternalId = "\"External id\"";

}  // namespace

EventWriter::EventWriter(const TraceSpec& spec, const JobLog& job, const RankLog& rank_log, int32_t rank,
                         TextBuffer* text)
    : spec_(spec),
      job_(job),
      log_(rank_log),
      layout_(LayoutOf(spec.style)),
      text_(text),
      rank_(rank),
      device_(rank % spec.ranks_per_host),
      process_id_(ProcessId(rank)),
      old_names_(spec.style == Style::kMicroseconds) {
  for (const char* grid :
       {"[64,1,1]", "[1024,1,1]", "[16,32,1]", "[8,8,16]", "[216,1,1]", "[4096,1,1]", "[32,4,1]", "[8,1,1]"}) {
    grids_.push_back(LayOutArray(grid, layout_));
  }
  for (const char* block : {"[128,1,1]", "[512,1,1]", "[256,1,1]", "[32,16,1]"})
    blocks_.push_back(LayOutArray(block, layout_));
  for (const char* shape :
       {"[[16,1024,1024],[],[]]", "[[16384,1024],[1024,4096],[],[]]", "[[4096],[16384,1024],[1024,4096],[],[]]",
        "[[16,16,1024,64],[16,16,1024,64],[16,16,1024,64],[],[],[]]"}) {
    shapes_.push_back(LayOutArray(shape, layout_));
  }
  for (const char* type :
       {"[\"c10::BFloat16\",\"\",\"Scalar\"]", "[\"c10::BFloat16\",\"c10::BFloat16\",\"Scalar\",\"\"]",
        "[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\",\"Scalar\",\"Scalar\"]",
        "[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\",\"\",\"Scalar\",\"Scalar\"]"}) {
    types_.push_back(LayOutArray(type, layout_));
  }
  for (const GroupLog& group : job.groups) {
    std::string ranks = "\"[";
    for (size_t i = 0; i < group.ranks.size() && i < 30; ++i) {
      if (i > 0) ranks += ", ";
      ranks += std::to_string(group.ranks[i]);
    }
    if (group.ranks.size() > 30) ranks += ", ...";
    group_ranks_.push_back(ranks + "]\"");
  }
  limiting_ = LayOutArray("[\"registers\",\"shared memory\"]", layout_);
}

int64_t EventWriter::ThreadId(uint8_t lane) const {
  return lane == kMainThread ? process_id_ : process_id_ + (lane == kAutogradThread ? 9752 : 77);
}

void EventWriter::BeginElement() {
  text_->Reserve(kElementBytes);
  if (!first_event_) text_->Put(',');
  first_event_ = false;
  text_->Put(layout_.before_event);
  text_->Put('{');
}

void EventWriter::EndElement(bool complete) {
  text_->Put(layout_.close);
  if (text_->size() <= text_->limit()) {
    ++event_count_;
    if (complete) ++complete_count_;
  }
}

void EventWriter::Key(std::string_view separator, std::string_view quoted_key) {
  text_->Put(separator);
  text_->Put(quoted_key);
  text_->Put(layout_.colon);
}

void EventWriter::Micros(int64_t value_ns) {
  if (layout_.whole_micros) {
    text_->PutInt(value_ns / 1000);
  } else if (layout_.short_micros) {
    text_->PutShortMicros(value_ns);
  } else {
    text_->PutMicros(value_ns);
  }
}

void EventWriter::Time(int64_t value_ns) { Micros(old_names_ ? value_ns : value_ns - kBaseNs); }

void EventWriter::BeginComplete(std::string_view category, std::string_view name, int64_t pid, int64_t tid,
                                const LogEvent& event) {
  BeginElement();
  Key(layout_.open, "\"ph\"");
  text_->Put("\"X\"");
  Key(layout_.same, "\"cat\"");
  text_->Put('"');
  text_->Put(category);
  text_->Put('"');
  Key(layout_.same, "\"name\"");
  text_->Put('"');
  text_->Put(name);
  text_->Put('"');
  Key(layout_.same, "\"pid\"");
  text_->PutInt(pid);
  Key(layout_.same, "\"tid\"");
  text_->PutInt(tid);
  Key(layout_.next, "\"ts\"");
  Time(event.start_ns);
  Key(layout_.same, "\"dur\"");
  Micros(event.duration_ns);
  Key(layout_.next, "\"args\"");
  text_->Put(layout_.args_open);
  first_argument_ = true;
}

void EventWriter::EndComplete() {
  text_->Put(layout_.args_close);
  EndElement(true);
}

void EventWriter::Argument(std::string_view quoted_key, int64_t value) {
  Key(first_argument_ ? std::string_view("") : argument_separator_, quoted_key);
  text_->PutInt(value);
  first_argument_ = false;
}

void EventWriter::ArgumentRaw(std::string_view quoted_key, std::string_view json) {
  Key(first_argument_ ? std::string_view("") : argument_separator_, quoted_key);
  text_->Put(json);
  first_argument_ = false;
}

void EventWriter::ArgumentHundredths(std::string_view quoted_key, int64_t hundredths) {
  Key(first_argument_ ? std::string_view("") : argument_separator_, quoted_key);
  text_->PutInt(hundredths / 100);
  text_->Put('.');
  text_->Put(static_cast<char>('0' + hundredths / 10 % 10));
  text_->Put(static_cast<char>('1' + hundredths % 9));
  first_argument_ = false;
}

void EventWriter::FlowEnd(bool start, uint32_t id, bool gradient, int64_t pid, int64_t tid, int64_t start_ns) {
  std::string_view category = gradient ? "\"fwdbwd\"" : "\"ac2g\"";
  std::string_view name = category;
  if (old_names_) {
    category = gradient ? "\"forward_backward\"" : "\"async_cpu_to_gpu\"";
    name = gradient ? "\"fwd_bwd\"" : "\"async_gpu\"";
  }
  BeginElement();
  Key(layout_.open, "\"ph\"");
  text_->Put(start ? "\"s\"" : "\"f\"");
  Key(layout_.same, "\"id\"");
  text_->PutInt(id);
  Key(layout_.same, "\"pid\"");
  text_->PutInt(pid);
  Key(layout_.same, "\"tid\"");
  text_->PutInt(tid);
  Key(layout_.same, "\"ts\"");
  Time(start_ns);
  Key(layout_.next, "\"cat\"");
  text_->Put(category);
  Key(layout_.same, "\"name\"");
  text_->Put(name);
  if (!start) {
    Key(layout_.same, "\"bp\"");
    text_->Put("\"e\"");
  }
  EndElement(false);
}

void EventWriter::Host(const LogEvent& event) {
  argument_separator_ = layout_.host_argument;
  const int64_t tid = ThreadId(event.lane);
  if (spec_.lean && event.kind != EventKind::kUserAnnotation && event.kind != EventKind::kMemory) {
    first_end_ = text_->size();
    return;
  }
  if (event.kind == EventKind::kMemory) {
    Instant(event);
    first_end_ = text_->size();
    return;
  }
  const bool is_python = event.kind == EventKind::kPythonFunction;
  std::string_view category = is_python ? "python_function" : "cpu_op";
  if (event.kind == EventKind::kUserAnnotation) category = old_names_ ? "cpu_op" : "user_annotation";
  BeginComplete(category, job_.names[event.name], process_id_, tid, event);
  if (old_names_) {
    ArgumentRaw("\"Trace name\"", "\"PyTorch Profiler\"");
    Argument("\"Trace iteration\"", 0);
  }
  if (is_python) {
    if (event_index_ == 0) {
      ArgumentRaw("\"Python parent id\"", "null");
    } else {
      Argument("\"Python parent id\"", event.external_id - 1);
    }
    Argument("\"Python id\"", event.external_id);
  } else {
    Argument(kExternalId, event.external_id);
    if (!old_names_) Argument("\"Record function id\"", event.external_id + 139);
    if (event.sequence != 0) {
      Argument("\"Sequence number\"", event.sequence);
      Argument("\"Fwd thread id\"", event.backward ? 1 : 0);
    }
    if (spec_.shapes && event.kind == EventKind::kCpuOp && event.collective == 0) {
      ArgumentRaw("\"Input Dims\"", shapes_[event.name % shapes_.size()]);
      ArgumentRaw(old_names_ ? "\"Input type\"" : "\"Input type\"", types_[event.name % types_.size()]);
    }
    if (event.collective != 0) CollectiveArguments(job_.collectives[event.collective - 1], false);
  }
  Argument(old_names_ ? "\"Profiler Event Index\"" : "\"Ev Idx\"", static_cast<int64_t>(event_index_++));
  EndComplete();
  first_end_ = text_->size();
  if (event.flow != 0 && !spec_.lean) FlowEnd(!event.backward, event.flow, true, process_id_, tid, event.start_ns);
}

void EventWriter::Instant(const LogEvent& event) {
  const MemoryRow& row = log_.memory[event.extra];
  BeginElement();
  Key(layout_.open, "\"ph\"");
  text_->Put("\"i\"");
  Key(layout_.same, "\"cat\"");
  text_->Put("\"cpu_instant_event\"");
  Key(layout_.same, "\"s\"");
  text_->Put("\"t\"");
  Key(layout_.same, "\"name\"");
  text_->Put("\"[memory]\"");
  Key(layout_.next, "\"pid\"");
  text_->PutInt(process_id_);
  Key(layout_.same, "\"tid\"");
  text_->PutInt(ThreadId(event.lane));
  Key(layout_.next, "\"ts\"");
  Time(event.start_ns);
  Key(layout_.next, "\"args\"");
  text_->Put(layout_.args_open);
  first_argument_ = true;
  Argument("\"Total Reserved\"", row.reserved);
  Argument("\"Total Allocated\"", row.allocated);
  Argument("\"Bytes\"", row.bytes);
  Argument("\"Addr\"", static_cast<int64_t>(row.address));
  Argument("\"Device Id\"", spec_.cpu_only ? -1 : device_);
  Argument("\"Device Type\"", spec_.cpu_only ? 0 : 1);
  Argument("\"Ev Idx\"", static_cast<int64_t>(event_index_++));
  text_->Put(layout_.args_close);
  EndElement(false);
}

void EventWriter::CollectiveArguments(const CollectiveLog& log, bool on_kernel) {
  if (old_names_ || spec_.cpu_only) return;
  const GroupLog& group = job_.groups[log.group];
  ArgumentRaw("\"Collective name\"", std::string("\"") + log.NameOn(rank_) + "\"");
  Argument("\"In msg nelems\"", log.in_elements);
  Argument("\"Out msg nelems\"", log.out_elements);
  Argument("\"Group size\"", static_cast<int64_t>(group.ranks.size()));
  ArgumentRaw("\"dtype\"", "\"Float\"");
  ArgumentRaw("\"In split size\"", "\"[]\"");
  ArgumentRaw("\"Out split size\"", "\"[]\"");
  ArgumentRaw("\"Process Group Name\"", "\"" + group.name + "\"");
  ArgumentRaw("\"Process Group Description\"", "\"" + group.description + "\"");
  ArgumentRaw("\"Process Group Ranks\"", group_ranks_[log.group]);
  if (log.sender >= 0) {
    if (rank_ == log.sender) Argument("\"Dst Rank\"", log.ranks.back());
    if (rank_ != log.sender) Argument("\"Src Rank\"", log.sender);
  }
  if (!on_kernel) {
    Argument("\"Global rank start\"", group.ranks.front());
    Argument("\"Global rank stride\"", group.ranks.size() > 1 ? group.ranks[1] - group.ranks[0] : 0);
  }
  if (spec_.style == Style::kCurrent) {
    if (!on_kernel) Argument("\"Rank\"", rank_);
    Argument("\"Seq\"", log.sequence);
    Argument("\"Comms Id\"", 0x5eed0000 + static_cast<int64_t>(log.group));
    ArgumentRaw("\"Is asynchronized op\"", "\"true\"");
  }
}

void EventWriter::KernelArguments(const LogEvent& event) {
  Argument(kExternalId, event.external_id);
  Argument("\"queued\"", 0);
  Argument("\"device\"", device_);
  Argument("\"context\"", 1);
  Argument("\"stream\"", event.lane);
  Argument("\"correlation\"", event.correlation);
  if (spec_.lean) {
    if (event.collective != 0) CollectiveArguments(job_.collectives[event.collective - 1], true);
    return;
  }
  Argument("\"registers per thread\"", 32 + event.name % 7 * 16);
  Argument("\"shared memory\"", event.name % 5 * 16'384);
  ArgumentHundredths("\"blocks per SM\"", 40 + event.name % 13 * 97);
  ArgumentHundredths("\"warps per SM\"", 160 + event.name % 13 * 388);
  ArgumentRaw("\"grid\"", grids_[event.name % grids_.size()]);
  ArgumentRaw("\"block\"", blocks_[event.name % blocks_.size()]);
  Argument("\"est. achieved occupancy %\"", event.name % 64);
  if (spec_.style == Style::kCurrent) {
    Key(argument_separator_, "\"occupancy\"");
    text_->Put("{\n        \"theoreticalOccupancy\": 0.");
    text_->PutInt(10 + event.name % 80);
    text_->Put(",\n        \"activeBlocksPerMultiprocessor\": ");
    text_->PutInt(1 + event.name % 12);
    text_->Put(",\n        \"limitingFactors\": ");
    text_->Put(limiting_);
    text_->Put("\n      }");
    Argument("\"graph id\"", 0);
    Argument("\"graph node id\"", 0);
    Argument("\"channel\"", 3 + event.lane % 4);
    ArgumentRaw("\"channel_type\"", "\"COMPUTE\"");
  }
  if (event.collective != 0) CollectiveArguments(job_.collectives[event.collective - 1], true);
}

void EventWriter::Device(const LogEvent& event) {
  argument_separator_ = layout_.device_argument;
  if (spec_.lean && event.kind == EventKind::kRuntime) {
    first_end_ = text_->size();
    return;
  }
  const std::string& name = job_.names[event.name];
  if (event.kind == EventKind::kRuntime) {
    const int64_t tid = ThreadId(event.lane);
    BeginComplete(old_names_ ? "cuda_runtime" : "cuda_runtime", name, process_id_, tid, event);
    Argument(kExternalId, event.external_id);
    Argument("\"cbid\"", 100 + event.name % 200);
    Argument("\"correlation\"", event.correlation);
    EndComplete();
    first_end_ = text_->size();
    if (event.flow != 0) FlowEnd(true, event.correlation, false, process_id_, tid, event.start_ns);
    return;
  }
  if (event.kind == EventKind::kDeviceAnnotation) {
    BeginComplete("gpu_user_annotation", name, device_, event.lane, event);
    Argument(kExternalId, event.external_id);
    EndComplete();
    first_end_ = text_->size();
    return;
  }
  const bool is_kernel = event.kind == EventKind::kKernel;
  const bool is_copy = event.kind == EventKind::kMemcpy;
  BeginComplete(is_kernel ? "kernel" : (is_copy ? "gpu_memcpy" : "gpu_memset"), name, device_, event.lane, event);
  if (is_kernel) {
    KernelArguments(event);
  } else {
    Argument(kExternalId, event.external_id);
    Argument("\"device\"", device_);
    Argument("\"context\"", 1);
    Argument("\"stream\"", event.lane);
    Argument("\"correlation\"", event.correlation);
    Argument("\"bytes\"", 524'288);
    ArgumentHundredths("\"memory bandwidth (GB/s)\"", 1'270 + event.extra % 100);
  }
  EndComplete();
  first_end_ = text_->size();
  if (!spec_.lean) FlowEnd(false, event.correlation, false, device_, event.lane, event.start_ns);
}

}  // namespace lockstep::tracegen
