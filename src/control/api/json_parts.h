#pragma once

#include <rapidjson/document.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/api/capture.h"
#include "control/api/json_reader.h"
#include "control/api/json_writer.h"
#include "control/api/process.h"

namespace lockstep::control {

// Objects within the documents of json.h. Reading overwrites what is there, and leaves what is missing.

void WriteProcess(const Process& process, JsonText* json);
void WriteSpec(const CaptureSpec& spec, JsonText* json);
void WriteCapture(const Capture& capture, JsonText* json);

Status ReadProcess(const rapidjson::Value& value, std::string path, Process* process);
Status ReadSpec(const rapidjson::Value& value, std::string path, CaptureSpec* spec);
Status ReadCapture(const rapidjson::Value& value, std::string path, Capture* capture);

// "pids": [5, 6] and "ranks": [[0, 3]] of a selection.
void WritePids(const std::vector<int32_t>& pids, JsonText* json);
void WriteRanks(const std::vector<std::pair<int32_t, int32_t>>& ranks, JsonText* json);
void ReadPids(ObjectReader* reader, std::vector<int32_t>* pids);
void ReadRanks(ObjectReader* reader, std::vector<std::pair<int32_t, int32_t>>* ranks);

// What a document may hold at most.
constexpr size_t kProcessesOfNode = 65536;
constexpr size_t kCapturesOfNode = 65536;
constexpr size_t kSelected = 65536;  ///< Ranges, pids and ids of a selector, each.

}  // namespace lockstep::control
