#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_object.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "node/control/api/capture.h"
#include "node/control/api/process.h"

namespace lockstep::control {

// Objects within the documents of json.h. Reading overwrites what is there, and leaves what is missing.

void WriteProcess(const Process& process, JsonWriter* json);
void WriteSpec(const CaptureSpec& spec, JsonWriter* json);
void WriteCapture(const Capture& capture, JsonWriter* json);

Status ReadProcess(JsonValue value, std::string path, Process* process);
Status ReadSpec(JsonValue value, std::string path, CaptureSpec* spec);
Status ReadCapture(JsonValue value, std::string path, Capture* capture);

// "pids": [5, 6] and "ranks": [[0, 3]] of a selection.
void WritePids(const std::vector<int32_t>& pids, JsonWriter* json);
void WriteRanks(const std::vector<std::pair<int32_t, int32_t>>& ranks, JsonWriter* json);
void ReadPids(JsonObject* reader, std::vector<int32_t>* pids);
void ReadRanks(JsonObject* reader, std::vector<std::pair<int32_t, int32_t>>* ranks);

// What a document may hold at most.
constexpr size_t kProcessesOfNode = 65536;
constexpr size_t kCapturesOfNode = 65536;
constexpr size_t kSelected = 65536;  ///< Ranges, pids and ids of a selector, each.

}  // namespace lockstep::control
