#pragma once

#include <string_view>

#include "present/page/page.h"

namespace lockstep::page {

/// The page as web/ builds it (web/dist/page.html of kAnalyze, live.html of kLive, answer.html of the others), with the
/// marks that ComposePage fills in: `<!--lockstep:title-->` within <title>, `<!--lockstep:meta-->` in the head,
/// `<!--lockstep:summary-->` and `<!--lockstep:blocks-->` in the body, each once. Its security policy says
/// `connect-src 'none'`, which a served page turns into `'self'`.
std::string_view PageTemplate(PageKind kind);

}  // namespace lockstep::page
