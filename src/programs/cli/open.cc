#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/collectives.h"
#include "base/http/http_server.h"
#include "base/temporary_folder.h"
#include "present/export/timeline/timeline.h"
#include "present/serve/trace_site.h"
#include "programs/cli/cli.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/browser.h"
#include "programs/cli/version.h"

namespace lockstep::cli {
namespace {

/// `lockstep open TRACE`: hands a timeline to Perfetto's page in the browser.
class OpenCommand : public Subcommand {
 public:
  const char* name() const override { return "open"; }
  const char* purpose() const override {
    return "Open a trace, or a job's merged timeline, in Perfetto in the browser";
  }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  /// The one file that Perfetto can read as it is, or empty.
  std::string SingleFile() const;
  Result<std::string> Merge(const std::string& folder, bool* partial, Console& console);
  Result<int> Serve(const std::string& file, bool partial, Console& console) const;

  std::vector<std::string> paths_;
  uint16_t port_ = 9001;
  std::string origin_ = "https://ui.perfetto.dev";
  bool keep_ = false;
  bool browser_ = false;
  bool quiet_ = false;
  RunInput input_;
};

constexpr const char* kOpenFooter =
    "One file is handed over as it is. A folder, or several files, are merged first: all ranks\n"
    "on one clock ('lockstep merge'), into a file that is removed at the end. The trace goes\n"
    "only to the browser on this machine. The command ends when the page has fetched the\n"
    "trace. Perfetto's own page can reach port 9001 only.\n"
    "Exit status: 0 fetched, or ended by a signal; 1 failed; 2 misused; 4 ended, but ranks or\n"
    "parts of files are missing.\n"
    "\n"
    "Examples:\n"
    "  lockstep open traces/\n"
    "  lockstep open job.pftrace --keep --perfetto-origin http://localhost:10000";

constexpr std::array<std::string_view, 11> kPerfettoEndings = {
    ".pftrace", ".perfetto-trace", ".pb", ".json", ".gz", ".zst", ".tar", ".zip", ".ctrace", ".trace", ".perfetto"};

bool IsWebOrigin(const std::string& origin) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string::npos) return false;
  const std::string_view name = std::string_view(origin).substr(0, scheme);
  const std::string_view host = std::string_view(origin).substr(scheme + 3);
  return (name == "http" || name == "https") && !host.empty() &&
         host.find_first_of("/?# \t\r\n\"'\\") == std::string_view::npos;
}

void OpenCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "A timeline (.pftrace, .json, .json.gz, .tar), or the traces of a job")
      ->type_name("PATH...");
  app.option_defaults()->group("Serving");
  app.add_option("--port", port_, "Port on 127.0.0.1 (9001, the one that Perfetto's page may reach; 0: any free one)")
      ->type_name("N")
      ->check(Checked(CLI::Range(0, 65535)));
  app.add_option("--perfetto-origin", origin_,
                 "Address of Perfetto's page, if you host your own (https://ui.perfetto.dev)")
      ->type_name("ORIGIN");
  app.add_flag("--keep", keep_, "Continue after the page has fetched the trace, until Ctrl-C");
  app.add_flag("--browser", browser_, "Open the link in the desktop's browser");
  app.add_flag("-q,--quiet", quiet_, "No progress, only the link");
  input_.DeclareAnalysis(app, false);
  input_.DeclareRunning(app);
  app.footer(kOpenFooter);
}

std::string OpenCommand::SingleFile() const {
  std::error_code ignored;
  if (paths_.size() != 1 || !std::filesystem::is_regular_file(paths_.front(), ignored)) return {};
  const std::string& path = paths_.front();
  for (const std::string_view ending : kPerfettoEndings) {
    if (path.size() > ending.size() && std::string_view(path).substr(path.size() - ending.size()) == ending)
      return path;
  }
  return {};
}

Result<std::string> OpenCommand::Merge(const std::string& folder, bool* partial, Console& console) {
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(const analysis::AnalysisResult result, input_.Analyze(&run, {"collectives"}));
  *partial = IsPartial(run);
  std::string file = folder + "/job.pftrace";
  timeline::Options options;
  options.step_name = input_.analysis().step_name;
  options.version = VersionText();
  ASSIGN_OR_RETURN(const timeline::OutputKind kind, timeline::KindOfOutput(file));
  RETURN_IF_ERROR(timeline::WriteTimeline(run, result.Get<analysis::Collectives>(), file, kind, options));
  return file;
}

Result<int> OpenCommand::Serve(const std::string& file, bool partial, Console& console) const {
  http::HttpServer* running = nullptr;
  serve::TraceSite site{.path = file, .name = serve::UrlName(file), .origin = origin_};
  site.on_fetched = [&] {
    if (!keep_) running->Stop();
  };
  http::ServerOptions options;
  options.port = port_;
  options.until_signal = true;
  ASSIGN_OR_RETURN(const auto server,
                   http::HttpServer::Open(options, [&](const http::Request& request) { return site.Answer(request); }));
  running = server.get();
  const std::string link = serve::ViewerLink(origin_, server->port(), site.name);
  console.out << link << std::endl;  // At once: somebody waits for the link.
  if (browser_ && !OpenInBrowser(link)) console.err << "lockstep: xdg-open is not there; open the link yourself\n";
  if (!quiet_) {
    console.err << (keep_ ? "Open the link in a browser on this machine; Ctrl-C ends it.\n"
                          : "Open the link in a browser on this machine; this ends when the trace has been fetched.\n");
  }
  server->Run();
  return partial ? kPartial : kDone;
}

Result<int> OpenCommand::Run(Console& console) {
  if (paths_.empty()) return Misuse("open needs at least one PATH: a timeline, or the traces of a job");
  if (!IsWebOrigin(origin_)) {
    return Misuse(
        fmt::format("--perfetto-origin {}: this is not an origin; it looks like https://ui.example.org", origin_));
  }
  const std::string file = SingleFile();
  if (!file.empty()) return Serve(file, false, console);
  const TemporaryFolder folder("lockstep-open");
  if (!folder.made()) {
    return Error{.code = ErrorCode::kIo,
                 .message = fmt::format("a temporary folder cannot be made: {}; set TMPDIR to one that can be written",
                                        std::strerror(errno)),
                 .file = folder.path()};
  }
  bool partial = false;
  ASSIGN_OR_RETURN(const std::string merged, Merge(folder.path(), &partial, console));
  return Serve(merged, partial, console);
}

}  // namespace

std::unique_ptr<Subcommand> MakeOpen() { return std::make_unique<OpenCommand>(); }

}  // namespace lockstep::cli
