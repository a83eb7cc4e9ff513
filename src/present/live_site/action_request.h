#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/control/api/capture.h"

namespace lockstep::live_site {

/// What a page asks for; docs/formats/live-page.md#actions.
struct CaptureWish {
  std::string job_id;  ///< As it was asked for; `selector` says it to the nodes.
  control::CaptureSelector selector;
  control::CaptureWindow window;
  control::CaptureOptions options;
  bool allow_unsafe = false;
};

/// The body of a POST; `job_id` where it names none. Errors: kCorruptData (no JSON, another type), kInvalidArgument
/// (out of range, or a member that is not known), kLimitExceeded.
Result<CaptureWish> ReadCaptureWish(std::string_view json, const std::string& job_id = {});
/// The same for evidence of a hang: the job.
Result<std::string> ReadHangWish(std::string_view json, const std::string& job_id = {});

}  // namespace lockstep::live_site
