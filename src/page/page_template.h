#pragma once

#include <string_view>

namespace lockstep::page {

/// The page as web/ builds it (web/dist/page.html), with the marks that ComposePage fills in: `<!--lockstep:title-->`
/// within <title>, `<!--lockstep:meta-->` in the head, `<!--lockstep:summary-->` and `<!--lockstep:blocks-->` in the
/// body, each once. Its security policy says `connect-src 'none'`, which a served page turns into `'self'`.
std::string_view PageTemplate();

}  // namespace lockstep::page
