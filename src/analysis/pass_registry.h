#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/pass.h"
#include "analysis/table.h"
#include "base/result.h"

namespace lockstep::analysis {

/// Every pass, in the order in which people read of them.
const std::vector<Pass>& AllPasses();

/// The documentation of the passes that a user can request, in the same order.
const std::vector<PassInfo>& Passes();

/// Null when no pass has this name.
const Pass* FindPass(std::string_view name);

/// Every table that a pass declares, in registry order.
const std::vector<const Table*>& Tables();

/// Null when no pass declares a table of this name.
const Table* FindTable(std::string_view name);

/// Passes that ran, in registry order.
std::vector<std::string> PassesOf(const AnalysisResult& result);

/// Which passes run: those named in `only` and what they need, in registry order; all but those on request when
/// `only` is empty. `also`: one more, such as one on request.
/// Errors: kInvalidArgument for an unknown name; the message has the nearest known one.
Result<std::vector<const Pass*>> ResolvePasses(const std::vector<std::string>& only, std::string_view also = {});

}  // namespace lockstep::analysis
