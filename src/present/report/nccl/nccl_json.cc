#include <fmt/format.h>

#include <algorithm>

#include "present/report/json_stream.h"
#include "present/report/nccl/nccl_report.h"

namespace lockstep::report {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclEvidence;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclPlace;
using evidence::NcclProcess;

void KnownNumber(JsonRow& row, const char* key, int64_t number) {
  row.Key(key);
  number >= 0 ? row.Int(number) : row.Null();
}

void FindingRow(JsonRow& row, const evidence::NcclLogFinding& finding) {
  row.Key("severity").Text(finding.severity).Key("kind").Text(finding.kind).Key("ranks").List(finding.ranks);
  row.Key("peer").TextOrNull(finding.peer).Key("first").Bool(finding.first).Key("time_unix_ns");
  finding.time_unix_ns != 0 ? row.Int(finding.time_unix_ns) : row.Null();
  row.Key("text").Text(finding.text).Key("remedy").TextOrNull(finding.remedy);
  row.Key("file").TextOrNull(finding.file).Key("line");
  finding.line > 0 ? row.Uint(finding.line) : row.Null();
}

void Interfaces(JsonRow& row, const char* key, const std::vector<evidence::NcclInterface>& interfaces) {
  row.Key(key).Each(interfaces, [&](const evidence::NcclInterface& interface) {
    row.Key("name").Text(interface.name).Key("address").TextOrNull(interface.address);
    row.Key("link").TextOrNull(interface.link);
  });
}

void ProcessRow(JsonRow& row, const NcclProcess& process) {
  row.Key("host").Text(process.host).Key("pid").Int(process.pid).Key("rank").Optional(process.rank);
  row.Key("version").TextOrNull(process.version).Key("driver_version").TextOrNull(process.driver_version);
  row.Key("network").TextOrNull(process.network).Key("bootstrap_interface").TextOrNull(process.bootstrap.name);
  row.Key("bootstrap_address").TextOrNull(process.bootstrap.address);
  Interfaces(row, "sockets", process.sockets);
  Interfaces(row, "adapters", process.adapters);
  row.Key("gpu_direct").Optional(process.gpu_direct);
  row.Key("nvls").Optional(process.nvls);
  row.Key("settings").Each(process.settings, [&](const evidence::NcclSetting& setting) {
    row.Key("name").Text(setting.name).Key("value").Text(setting.value);
    row.Key("by_plugin").Bool(setting.by_plugin);
  });
  row.Key("plugins").List(process.plugins).Key("ended").Bool(process.ended);
  row.Key("line_count").Uint(process.line_count);
}

void MemberRow(JsonRow& row, const NcclJob& job, const NcclMember& member) {
  const NcclProcess& process = job.processes[member.process];
  row.StartObject();
  KnownNumber(row, "rank", member.rank);
  row.Key("host").Text(process.host).Key("pid").Int(process.pid);
  KnownNumber(row, "device", member.device);
  row.Key("bus_id").TextOrNull(member.bus_id).Key("started").Bool(member.started.seen());
  row.Key("completed").Bool(member.completed.seen()).Key("destroyed").Bool(member.destroyed.seen());
  row.Key("aborted").Bool(member.aborted.seen());
  row.Key("init_ns").Optional(member.init_ns);
  row.Key("channels").StartObject();
  for (const auto& [name, count] : member.channel_counts) row.Key(name).Int(count);
  row.EndObject().Key("collective_count").Uint(member.operations.size() + member.dropped_operation_count);
  row.Key("last_collective");
  member.operations.empty() ? row.Null() : row.Int(member.operations.back().operation_idx);
  row.EndObject();
}

void CommunicatorRow(JsonRow& row, const NcclJob& job, const NcclCommunicator& communicator) {
  row.Key("id").TextOrNull(communicator.id).Key("rank_count").Int(communicator.rank_count);
  row.Key("members").StartArray();
  for (const uint32_t idx : communicator.members) MemberRow(row, job, job.members[idx]);
  row.EndArray().Key("transports").StartArray();
  for (const auto& [name, count] : TransportsOf(job, communicator)) {
    row.StartObject().Key("name").Text(name).Key("connection_count").Uint(count).EndObject();
  }
  row.EndArray().Key("rings").Each(RingsOf(job, communicator), [&](const NcclRing& ring) {
    row.Key("channels").List(ring.channels).Key("order").List(ring.order);
  });
  row.Key("trees").Each(TreesOf(job, communicator), [&](const NcclTree& tree) {
    row.Key("channels").List(tree.channels).Key("roots").List(tree.roots);
    row.Key("edges").StartArray();
    for (const auto& [rank, below] : tree.down) {
      for (const int32_t down : below) row.StartArray().Int(rank).Int(down).EndArray();
    }
    row.EndArray();
  });
}

void TopologyRow(JsonRow& row, const evidence::NcclTopology& topology) {
  row.Key("file").Text(topology.file).Key("nodes").StartArray();
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    const evidence::TopologyNode& node = topology.nodes[i];
    row.StartObject().Key("kind").Text(node.kind);
    row.Key("name").Text(TopologyNodeName(topology, static_cast<int32_t>(i)));
    row.Key("facts").TextOrNull(TopologyNodeFacts(topology, static_cast<int32_t>(i)));
    KnownNumber(row, "parent", node.parent);
    row.Key("attributes").StartArray();
    for (const auto& [name, value] : node.attributes) {
      row.StartObject().Key("name").Text(name).Key("value").Text(value).EndObject();
    }
    row.EndArray().EndObject();
  }
  row.EndArray();
}

void GraphsRow(JsonRow& row, const evidence::NcclGraphs& graphs) {
  row.Key("file").Text(graphs.file).Key("graphs").Each(graphs.graphs, [&](const evidence::NcclGraph& graph) {
    row.Key("id").Int(graph.id).Key("channel_count").Int(graph.channel_count);
    row.Key("type_intra").TextOrNull(graph.type_intra).Key("type_inter").TextOrNull(graph.type_inter);
    row.Key("speed_intra").TextOrNull(graph.speed_intra).Key("speed_inter").TextOrNull(graph.speed_inter);
    row.Key("channels").StartArray();
    for (const std::vector<std::string>& channel : graph.channels) {
      row.List(channel);
    }
    row.EndArray();
  });
}

void RasRow(JsonRow& row, const evidence::RasReport& report) {
  row.Key("file").Text(report.source).Key("version").TextOrNull(report.nccl_version);
  row.Key("communicators").Each(report.communicators, [&](const evidence::RasCommunicator& communicator) {
    row.Key("hash").Text(communicator.hash).Key("size").Int(communicator.size);
    row.Key("missing_ranks").List(communicator.missing_ranks).Key("dead_ranks").List(communicator.dead_ranks);
    row.Key("ranks").Each(communicator.ranks, [&](const evidence::RasRank& rank) {
      row.Key("rank").Int(rank.rank).Key("host").TextOrNull(rank.host).Key("pid").Int(rank.pid);
      row.Key("status").TextOrNull(rank.status).Key("operation_counts").StartArray();
      for (const auto& [name, count] : rank.operation_counts) {
        row.StartObject().Key("name").Text(name).Key("count").Int(count).EndObject();
      }
      row.EndArray();
    });
  });
}

void WriteData(JsonDocument& json, const NcclEvidence& evidence) {
  const NcclJob& job = evidence.job;
  json.StartObject();
  WriteTable(json, "findings", evidence.findings, FindingRow);
  json.Key("lines");
  JsonRow lines;
  lines.Key("nccl").Uint(job.lines.nccl).Key("unknown").Uint(job.lines.unknown).Key("other").Uint(job.lines.other);
  lines.Key("cut").Uint(job.lines.cut).Key("kinds").StartObject();
  for (const auto& [kind, count] : job.kinds) lines.Key(kind).Uint(count);
  lines.EndObject();
  WriteRow(json, lines);
  WriteTable(json, "communicators", job.communicators,
             [&](JsonRow& row, const NcclCommunicator& communicator) { CommunicatorRow(row, job, communicator); });
  WriteTable(json, "processes", job.processes, ProcessRow);
  WriteTable(json, "tunings", job.tunings, [](JsonRow& row, const auto& tuning) {
    row.Key("choice").Text(tuning.first).Key("line_count").Uint(tuning.second);
  });
  WriteTable(json, "topologies", evidence.topologies, TopologyRow);
  WriteTable(json, "graph_files", evidence.graphs, GraphsRow);
  WriteTable(json, "ras", evidence.ras, RasRow);
  json.EndObject();
}

}  // namespace

model::Ledger NcclLedger(const NcclEvidence& evidence) {
  model::Ledger ledger;
  for (const evidence::EvidenceProblem& problem : evidence.problems) {
    ledger.Add({.code = problem.skipped ? "nccl_file_unreadable" : "nccl_file_damaged",
                .severity = problem.skipped ? model::Severity::kError : model::Severity::kWarning,
                .source = problem.file,
                .rank = problem.rank,
                .message = problem.message,
                .advice = problem.skipped ? "the other files were used" : "what could be read of it was used"});
  }
  if (evidence.job.lines.unknown > 0) {
    std::string samples;
    for (const std::string& sample : evidence.job.unknown_samples) {
      if (samples.size() < 1000) samples += (samples.empty() ? "" : " | ") + sample;
    }
    ledger.Add(
        {.code = "nccl_lines_unknown",
         .severity = model::Severity::kInfo,
         .message = fmt::format("{} lines of NCCL are of no known kind: {}", evidence.job.lines.unknown, samples),
         .advice = "they are not used; a newer version of NCCL may print them"});
  }
  if (evidence.job.lines.cut > 0) {
    ledger.Add({.code = "nccl_lines_cut",
                .severity = model::Severity::kInfo,
                .message = fmt::format("{} lines are cut at NCCL's limit of 1 KiB", evidence.job.lines.cut),
                .advice = "what stands before the cut is used"});
  }
  return ledger;
}

bool IsPartial(const NcclEvidence& evidence) { return !evidence.problems.empty(); }

std::string NcclDataJson(const NcclEvidence& evidence) {
  return JsonText([&](JsonDocument& json) { WriteData(json, evidence); });
}

void WriteNcclJson(const NcclEvidence& evidence, std::ostream& out) {
  WriteDocument(out, "lockstep.nccl_log/1", IsPartial(evidence), [&](JsonDocument& json) {
    WriteData(json, evidence);
    WriteLedger(json, NcclLedger(evidence));
  });
}

}  // namespace lockstep::report
