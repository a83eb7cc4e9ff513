// Sections of what the ranks share: gradients, weights, stages (ddp, fsdp, pipeline).
#include <fmt/format.h>

#include <algorithm>

#include "analysis/parallelism/ddp.h"
#include "analysis/parallelism/fsdp.h"
#include "analysis/parallelism/pipeline.h"
#include "present/report/format.h"
#include "present/report/text_page.h"

namespace lockstep::report {
namespace {

int64_t PerPass(int64_t sum_ns, uint64_t count) { return count == 0 ? 0 : sum_ns / static_cast<int64_t>(count); }

}  // namespace

void WriteDdpSection(const TextPage& page) {
  page.Heading("DDP", "gradients all-reduced during the backward pass; tail: after the device's backward pass");
  const analysis::Ddp& ddp = page.result.Get<analysis::Ddp>();
  TextTable ranks({{"rank"},
                   {"passes", Align::kRight, false, 2},
                   {"buckets"},
                   {"bytes/pass", Align::kRight, false, 1},
                   {"time/pass"},
                   {"exposed"},
                   {"tail/pass"}});
  size_t rank_count = 0;
  for (const analysis::DdpRow& row : ddp.ranks) {
    if (!page.Shows(row.rank_index) || ++rank_count > page.options.top) continue;
    ranks.AddRow({page.RankLabel(row.rank_index), FormatCount(row.pass_count), FormatNumber(row.buckets_per_pass),
                  FormatBytes(row.bytes_per_pass), FormatDuration(PerPass(row.communication_ns, row.pass_count)),
                  FormatShare(row.exposed_ns, row.communication_ns),
                  row.tail_ns ? FormatDuration(PerPass(*row.tail_ns, row.pass_count)) : "-"});
  }
  if (rank_count == 0) {
    page.Paragraph("No all_reduces of a data group in a backward pass.");
    return;
  }
  page.Write(ranks, rank_count);
  page.out << '\n';
  TextTable buckets({{"bucket"},
                     {"group", Align::kRight, false, 3},
                     {"bytes"},
                     {"calls", Align::kRight, false, 2},
                     {"issued at"},
                     {"duration"},
                     {"in backward", Align::kRight, false, 1},
                     {"exposed"}});
  for (size_t i = 0; i < ddp.buckets.size() && i < page.options.top; ++i) {
    const analysis::DdpBucketRow& row = ddp.buckets[i];
    buckets.AddRow({FormatCount(row.bucket), FormatCount(row.group), FormatBytes(row.bytes),
                    FormatCount(row.call_count), FormatPercent(row.issue_ratio), FormatDuration(row.mean_duration_ns),
                    FormatDuration(row.mean_overlapped_ns), FormatDuration(row.mean_exposed_ns)});
  }
  page.Write(buckets, ddp.buckets.size());
  page.Paragraph("issued at: share of the CPU's backward pass that had passed.", Paint::kFaint);
}

void WriteFsdpSection(const TextPage& page) {
  page.Heading("FSDP", "weights gathered, gradients reduce-scattered; exposed: nothing is computed beside it");
  TextTable table({{"rank"},
                   {"gathers"},
                   {"backward", Align::kRight, false, 4},
                   {"prefetched"},
                   {"exposed"},
                   {"scatters"},
                   {"exposed"},
                   {"peak memory", Align::kRight, false, 1},
                   {"resharding", Align::kLeft, false, 2}});
  size_t rank_count = 0;
  for (const analysis::FsdpRow& row : page.result.Get<analysis::Fsdp>().rows) {
    if (!page.Shows(row.rank_index) || ++rank_count > page.options.top) continue;
    table.AddRow({page.RankLabel(row.rank_index), FormatCount(row.gather_count), FormatCount(row.gather_backward_count),
                  FormatCount(row.prefetched_count), FormatShare(row.gather_exposed_ns, row.gather_ns),
                  FormatCount(row.scatter_count), FormatShare(row.scatter_exposed_ns, row.scatter_ns),
                  FormatBytes(row.peak_allocated_bytes), analysis::ReshardingName(row.resharding)});
  }
  if (rank_count == 0) {
    page.Paragraph("No data group that both gathers and reduce-scatters.");
    return;
  }
  page.Write(table, rank_count);
}

void WritePipelineSection(const TextPage& page) {
  page.Heading("PIPELINE", "bubble: in a send or receive of the pipeline with nothing computed");
  TextTable table({{"stage"},
                   {"rank"},
                   {"group", Align::kRight, false, 4},
                   {"sends", Align::kRight, false, 3},
                   {"receives", Align::kRight, false, 3},
                   {"batches/step", Align::kRight, false, 1},
                   {"under way", Align::kRight, false, 2},
                   {"bubble"},
                   {"of span"},
                   {"schedule", Align::kLeft}});
  size_t row_count = 0;
  for (const analysis::PipelineRow& row : page.result.Get<analysis::Pipelines>().rows) {
    if (!page.Shows(row.rank_index) || ++row_count > page.options.top) continue;
    table.AddRow({fmt::format("{}/{}", row.stage, row.stage_count), page.RankLabel(row.rank_index),
                  FormatCount(row.group), FormatCount(row.send_count), FormatCount(row.receive_count),
                  row.microbatches_per_step ? FormatNumber(*row.microbatches_per_step) : "-",
                  row.in_flight_count ? FormatCount(*row.in_flight_count) : "-", FormatDuration(row.bubble_ns),
                  FormatPercent(row.bubble_ratio), analysis::PipelineScheduleName(row.schedule)});
  }
  if (row_count == 0) {
    page.Paragraph("No sends or receives of a pipeline group.");
    return;
  }
  page.Write(table, row_count);
}

}  // namespace lockstep::report
