#pragma once

#include <functional>
#include <string>

#include "base/http/http_message.h"

namespace lockstep::serve {

/// One trace file for a viewer in the browser: "/NAME" is the file, readable by pages of `origin` and by no others.
struct TraceSite {
  std::string path;                       ///< Of the file.
  std::string name;                       ///< Last part of the URL: of the file's name, what needs no escape there.
  std::string origin;                     ///< "https://ui.perfetto.dev".
  std::function<void()> on_fetched = {};  ///< The file has left, whole.

  http::Response Answer(const http::Request& request) const;
};

/// A file's name with everything that a URL would have to escape replaced by '_'.
std::string UrlName(const std::string& path);

/// The link that makes Perfetto's page of `origin` load the file from 127.0.0.1:`port`. The page's own policy admits
/// plain HTTP from port 9001 only; a page of one's own may admit others.
std::string ViewerLink(const std::string& origin, uint16_t port, const std::string& name);

}  // namespace lockstep::serve
