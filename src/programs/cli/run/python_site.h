#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/temporary_folder.h"

namespace lockstep::cli {

/// What Python processes of a job are to do that know nothing of it.
struct PythonSite {
  bool has_hang_dumps = false;  ///< Those that have a rank answer `lockstep hang`: python/lockstep/_hang.py.
  bool has_captures = false;    ///< Those that train are traced by their steps: python/lockstep/_capture.py.
  bool marks_steps = false;     ///< Those that train mark their steps: python/lockstep/_steps.py.
};

/// Variables with which they do: PYTHONPATH begins with a folder below `runtime_folder` whose sitecustomize does what
/// the other variables say and then runs the sitecustomize that it hides, if there is one. The Python files are built
/// in. Errors: kIo, kPermissionDenied (the folder cannot be written).
Result<std::vector<std::pair<std::string, std::string>>> MakePythonSite(const std::string& runtime_folder,
                                                                        const PythonSite& site);

/// Where steps are recorded to.
struct StepRecording {
  std::string path = {};
  std::unique_ptr<TemporaryFolder> folder = {};
  std::vector<std::pair<std::string, std::string>> variables = {};
};
/// Into `kept`; where that is empty, into what LOCKSTEP_TRACE says already, else into a folder in memory that is gone
/// with the recording. Errors: kNotFound (this program's liblockstep is not beside it), kIo.
Result<StepRecording> MakeStepRecording(const std::string& kept);

}  // namespace lockstep::cli
