#pragma once

#include <rapidjson/document.h>

#include <string>

#include "base/result.h"
#include "control/api/capture.h"
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

// What a document may hold at most.
constexpr size_t kProcessesOfNode = 65536;
constexpr size_t kCapturesOfNode = 65536;
constexpr size_t kSelected = 65536;  ///< Ranges, pids and ids of a selector, each.

}  // namespace lockstep::control
