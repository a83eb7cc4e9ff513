#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/flight_recorder/pickle_for_test.h"

namespace lockstep::ingest::test {

/// What a dump of version 2.10 says, in its own words. Written here as PyTorch's two writers would.
struct DumpFrame {
  std::string name;
  std::string file;
  int64_t line = 0;
};

struct DumpOperation {
  std::vector<size_t> frames;  ///< Into Dump::frames.
  int64_t record_id = 0;
  int64_t pg_id = 0;
  std::pair<std::string, std::string> group = {"0", "default_pg"};
  std::string thread_name = "python3";
  std::string thread_id = "140278848537088";
  int64_t collective_seq_id = 1;
  int64_t p2p_seq_id = 0;
  int64_t op_id = 1;
  std::string name = "nccl:all_reduce";
  int64_t time_created_ns = 1795230700358370288;
  std::optional<double> duration_ms;
  std::vector<std::vector<int64_t>> input_sizes = {{1024}};
  std::vector<std::vector<int64_t>> output_sizes = {{1024}};
  std::vector<std::string> input_dtypes = {"Float"};
  std::vector<std::string> output_dtypes = {"Float"};
  std::string state = "scheduled";
  std::optional<int64_t> started_ns;
  std::optional<int64_t> completed_ns;
  bool retired = false;
  int64_t timeout_ms = 600000;
  bool is_p2p = false;
};

struct DumpGroup {
  std::string name;
  std::string description;
  std::string ranks;  ///< "[0, 1]".
};

struct DumpProgress {
  int64_t enqueued = -1, started = -1, completed = -1;
};

struct Dump {
  std::string version = "2.10";
  std::string comm_version = "2.27.3";
  std::vector<DumpGroup> groups;
  std::map<int64_t, DumpProgress> progress;  ///< By local id.
  std::vector<DumpFrame> frames;
  std::vector<DumpOperation> operations;
};

inline void WriteSizes(PickleWriter& out, const std::string& key, const std::vector<std::vector<int64_t>>& sizes) {
  out.Text(key).List();
  for (const auto& shape : sizes) {
    out.List();
    for (const int64_t length : shape) out.Int(length);
    out.EndList();
  }
  out.EndList();
}

inline void WriteTexts(PickleWriter& out, const std::string& key, const std::vector<std::string>& texts) {
  out.Text(key).List();
  for (const std::string& text : texts) out.Text(text);
  out.EndList();
}

inline void WriteTime(PickleWriter& out, const std::string& key, std::optional<int64_t> time) {
  out.Text(key);
  if (time) {
    out.Int(*time);
  } else {
    out.None();
  }
}

/// `frame_numbers`: what a frame that was written before is called in the memo; as many as there are frames.
inline void WriteOperation(PickleWriter& out, const Dump& dump, const DumpOperation& operation,
                           std::vector<std::optional<uint32_t>>& frame_numbers) {
  out.Dict();
  if (!operation.frames.empty()) {
    out.Text("frames").List();
    for (const size_t frame : operation.frames) {
      if (frame_numbers[frame]) {
        out.Get(*frame_numbers[frame]);
        continue;
      }
      const DumpFrame& facts = dump.frames[frame];
      out.Dict().Text("name").Text(facts.name).Text("filename").Text(facts.file).Text("line").Int(facts.line).EndDict();
      frame_numbers[frame] = out.Put();
    }
    out.EndList();
  }
  out.Text("record_id").Int(operation.record_id).Text("pg_id").Int(operation.pg_id);
  out.Text("process_group").Text(operation.group.first).Text(operation.group.second).Op(0x86);
  out.Text("thread_name").Text(operation.thread_name).Text("thread_id").Text(operation.thread_id);
  out.Text("collective_seq_id").Int(operation.collective_seq_id).Text("p2p_seq_id").Int(operation.p2p_seq_id);
  out.Text("op_id").Int(operation.op_id).Text("profiling_name").Text(operation.name);
  out.Text("time_created_ns").Int(operation.time_created_ns);
  if (operation.duration_ms) out.Text("duration_ms").Float(*operation.duration_ms);
  WriteSizes(out, "input_sizes", operation.input_sizes);
  WriteTexts(out, "input_dtypes", operation.input_dtypes);
  WriteSizes(out, "output_sizes", operation.output_sizes);
  WriteTexts(out, "output_dtypes", operation.output_dtypes);
  out.Text("state").Text(operation.state);
  WriteTime(out, "time_discovered_started_ns", operation.started_ns);
  WriteTime(out, "time_discovered_completed_ns", operation.completed_ns);
  out.Text("retired").Bool(operation.retired).Text("timeout_ms").Int(operation.timeout_ms);
  out.Text("is_p2p").Bool(operation.is_p2p).EndDict();
}

inline std::string PickleOf(const Dump& dump) {
  PickleWriter out;
  out.Dict().Text("version").Text(dump.version).Text("pg_config").Dict();
  for (const DumpGroup& group : dump.groups) {
    out.Text(group.name).Dict().Text("name").Text(group.name).Text("desc").Text(group.description);
    out.Text("ranks").Text(group.ranks).EndDict();
  }
  out.EndDict().Text("comm_lib_version").Text(dump.comm_version).Text("pg_status").Dict();
  for (const auto& [id, progress] : dump.progress) {
    out.Text(std::to_string(id)).Dict().Text("last_enqueued_collective").Int(progress.enqueued);
    out.Text("last_started_collective").Int(progress.started);
    out.Text("last_completed_collective").Int(progress.completed).EndDict();
  }
  out.EndDict().Text("entries").List();
  std::vector<std::optional<uint32_t>> frame_numbers(dump.frames.size());
  for (const DumpOperation& operation : dump.operations) WriteOperation(out, dump, operation, frame_numbers);
  return out.EndList().EndDict().Take();
}

/// For texts without characters that JSON escapes.
inline std::string Quoted(const std::string& text) { return '"' + text + '"'; }

inline std::string JsonOf(const std::vector<std::vector<int64_t>>& sizes) {
  std::string out;
  for (const auto& shape : sizes) {
    std::string lengths;
    for (const int64_t length : shape) lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
    out += (out.empty() ? "[" : ",[") + lengths + "]";
  }
  return "[" + out + "]";
}

inline std::string JsonOf(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ",") + Quoted(text);
  return "[" + out + "]";
}

inline std::string JsonOf(const DumpOperation& operation) {
  const auto number = [](const char* key, int64_t value) { return Quoted(key) + ":" + std::to_string(value) + ","; };
  const auto boolean = [](const char* key, bool value) { return Quoted(key) + (value ? ":true," : ":false,"); };
  const auto text = [](const char* key, const std::string& value) { return Quoted(key) + ":" + Quoted(value) + ","; };
  std::string out = "{" + number("collective_seq_id", operation.collective_seq_id);
  if (operation.duration_ms) out += "\"duration_ms\":" + std::to_string(*operation.duration_ms) + ",";
  out +=
      "\"input_dtypes\":" + JsonOf(operation.input_dtypes) + ",\"input_sizes\":" + JsonOf(operation.input_sizes) + ",";
  out += boolean("is_p2p", operation.is_p2p) + number("op_id", operation.op_id);
  out += "\"output_dtypes\":" + JsonOf(operation.output_dtypes) +
         ",\"output_sizes\":" + JsonOf(operation.output_sizes) + ",";
  out += number("p2p_seq_id", operation.p2p_seq_id) + number("pg_id", operation.pg_id);
  out += "\"process_group\":" + JsonOf(std::vector{operation.group.first, operation.group.second}) + ",";
  out += text("profiling_name", operation.name) + number("record_id", operation.record_id);
  out += boolean("retired", operation.retired) + text("state", operation.state);
  out += text("thread_id", operation.thread_id) + text("thread_name", operation.thread_name);
  out += number("time_created_ns", operation.time_created_ns);
  out += number("time_discovered_completed_ns", operation.completed_ns.value_or(0));
  out += number("time_discovered_started_ns", operation.started_ns.value_or(0));
  return out + "\"timeout_ms\":" + std::to_string(operation.timeout_ms) + "}";
}

/// Has no frames, as PyTorch's has none.
inline std::string JsonOf(const Dump& dump) {
  std::string out = "{\"comm_lib_version\":" + Quoted(dump.comm_version);
  std::string entries, groups, progress;
  for (const DumpOperation& operation : dump.operations) entries += (entries.empty() ? "" : ",") + JsonOf(operation);
  if (!entries.empty()) out += ",\"entries\":[" + entries + "]";
  for (const DumpGroup& group : dump.groups) {
    groups += (groups.empty() ? "" : ",") + Quoted(group.name) + ":{\"desc\":" + Quoted(group.description) +
              ",\"name\":" + Quoted(group.name) + ",\"ranks\":" + Quoted(group.ranks) + "}";
  }
  for (const auto& [id, of_group] : dump.progress) {
    progress += (progress.empty() ? "" : ",") + Quoted(std::to_string(id)) +
                ":{\"last_completed_collective\":" + Quoted(std::to_string(of_group.completed)) +
                ",\"last_enqueued_collective\":" + Quoted(std::to_string(of_group.enqueued)) +
                ",\"last_started_collective\":" + Quoted(std::to_string(of_group.started)) + "}";
  }
  return out + ",\"nccl_comm_state\":{},\"pg_config\":{" + groups + "},\"pg_status\":{" + progress +
         "},\"version\":" + Quoted(dump.version) + "}";
}

}  // namespace lockstep::ingest::test
