#!/usr/bin/env python3
"""Writes the dashboards beside it: `packaging/grafana/build.py`. A panel is a question, its expression (PromQL over the metrics of
docs/daemon-metrics.md and the rules of packaging/prometheus), a unit and how it is drawn; the rest is what Grafana wants around it."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
JOB = 'job_id=~"$job_id"'


def variable(name, label, expression):
    return {"name": name, "label": label, "type": "query", "query": expression, "refresh": 2, "includeAll": True, "multi": True,
            "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "datasource": {"type": "prometheus", "uid": "${datasource}"}}


JOB_VARIABLE = variable("job_id", "Job", "label_values(lockstep_rank_up, job_id)")
HOST_VARIABLE = variable("host", "Host", "label_values(lockstep_rank_up, host)")
MODEL_VARIABLE = variable("model", "Model", "label_values(lockstep_serving_requests_total, model)")


def panel(title, why, unit, *queries, kind="timeseries", width=12, height=8, dashed=None):
    """`queries`: (expression, legend). `dashed`: how the legends end whose lines are dashed."""
    return {"title": title, "description": why, "kind": kind, "unit": unit, "width": width, "height": height,
            "queries": queries, "dashed": dashed}


DASHBOARDS = {
    "fleet": ("lockstep: fleet", [HOST_VARIABLE], [
        panel("Ranks that are there", "By host: a host that loses its ranks stands out.", "short",
              ('sum by (host) (lockstep_rank_up{host=~"$host"})', "{{host}}"), width=8),
        panel("Jobs", "How many ranks each job has here, and how many its world.", "short",
              ('count by (job_id) (lockstep_rank_up{host=~"$host"} == 1)', "{{job_id}}"),
              ("max by (job_id) (lockstep_job_world_size)", "{{job_id}}, world size"), width=8),
        panel("Alerts", "What fires now.", "short", ('sort_desc(ALERTS{alertname=~"Lockstep.*",alertstate="firing"})', ""), kind="table", width=8),
        panel("Age of the newest step", "By job: what grows without end hangs.", "s",
              ("time() - max by (job_id) (lockstep_rank_last_progress_timestamp_seconds)", "{{job_id}}")),
        panel("Daemons", "1: scraped.", "short", ('up{job="lockstep"}', "{{instance}}")),
    ]),
    "job": ("lockstep: job", [JOB_VARIABLE], [
        panel("Steps a second", "By job, from its fastest rank.", "ops",
              (f"max by (job_id) (rate(lockstep_steps_total{{{JOB}}}[5m]))", "{{job_id}}"), width=8),
        panel("Step time", "Mean of all ranks, and the median of the last hundred.", "s",
              (f"job:lockstep_step:seconds_rate5m{{{JOB}}}", "{{job_id}} mean"),
              (f"max by (job_id) (lockstep_job_step_median_seconds{{{JOB}}})", "{{job_id}} median"), width=8),
        panel("Tokens a second", "What the program counts.", "short",
              (f"sum by (job_id) (rate(lockstep_tokens_total{{{JOB}}}[5m]))", "{{job_id}}"), width=8),
        panel("Where a step goes", "Mean over ranks; the phases add up to the step.", "s",
              (f"avg by (phase) (rate(lockstep_step_phase_seconds_total{{{JOB}}}[5m])) / on () group_left () "
               f"avg(rate(lockstep_steps_total{{{JOB}}}[5m]))", "{{phase}}")),
        panel("Work of each rank in a step", "Without waiting: one row darker than the rest is a straggler.", "s",
              (f"job_rank:lockstep_compute_per_step:seconds_rate5m{{{JOB}}}", "rank {{rank}}"), kind="status-history"),
        panel("Against the median rank", "Above 1.2 for ten minutes: LockstepStragglerRank, docs/runbook/straggler.md.", "short",
              (f"topk(10, job_rank:lockstep_straggler:ratio{{{JOB}}})", "rank {{rank}}")),
        panel("Step durations", "All steps of all ranks: a second band is a second kind of step.", "s",
              (f"sum by (le) (increase(lockstep_step_duration_seconds_bucket{{{JOB}}}[5m]))", "{{le}}"), kind="heatmap"),
        panel("Memory that PyTorch holds", "By rank.", "bytes",
              (f"lockstep_torch_memory_reserved_bytes{{{JOB}}}", "rank {{rank}}")),
        panel("Errors in logs", "A minute, by rank: docs/runbook/log-errors.md.", "short",
              (f"60 * sum by (rank) (rate(lockstep_log_errors_total{{{JOB}}}[5m]))", "rank {{rank}}")),
        panel("Failures that logs tell of", "Of the last hour, by kind.", "short",
              (f"sum by (kind) (increase(lockstep_log_events_total{{{JOB}}}[1h]))", "{{kind}}"),
              (f"sum(increase(lockstep_watchdog_timeouts_total{{{JOB}}}[1h]))", "watchdog timeout")),
        panel("Ranks", "Who they are and where.", "short", (f"lockstep_rank_info{{{JOB}}}", ""), kind="table"),
    ]),
    "node": ("lockstep: node", [HOST_VARIABLE], [
        panel("Pressure", "Share of time in which work waited for a resource: a node that is short of it.", "percentunit",
              ('sum by (host, resource) (rate(lockstep_host_pressure_seconds_total{host=~"$host",kind="some"}[5m]))', "{{host}} {{resource}}")),
        panel("Processors that ranks use", "Of one, by rank.", "short",
              ('sum by (host, job_id, rank) (rate(lockstep_rank_cpu_seconds_total{host=~"$host"}[5m]))', "{{host}} {{job_id}} rank {{rank}}")),
        panel("Memory of ranks", "Resident. What grows without end: LockstepMemoryCreep, docs/runbook/memory-creep.md.", "bytes",
              ('sum by (host, job_id, rank) (lockstep_rank_resident_memory_bytes{host=~"$host"})', "{{host}} {{job_id}} rank {{rank}}")),
        panel("Memory of the node", "What there is, and what programs can still have; where [sensors] host = true.", "bytes",
              ('max by (host) (lockstep_host_memory_total_bytes{host=~"$host"})', "{{host}}"),
              ('max by (host) (lockstep_host_memory_available_bytes{host=~"$host"})', "{{host}} available")),
        panel("Storage", "Bytes a second that ranks read and wrote.", "Bps",
              ('sum by (host, job_id, rank) (rate(lockstep_rank_io_read_bytes_total{host=~"$host"}[5m]))', "{{host}} {{job_id}} rank {{rank}} read"),
              ('sum by (host, job_id, rank) (rate(lockstep_rank_io_written_bytes_total{host=~"$host"}[5m]))', "{{host}} {{job_id}} rank {{rank}} written")),
        panel("Network", "Bytes a second of interfaces, both ways; where [sensors] host = true.", "Bps",
              ('sum by (host, device) (rate(lockstep_host_network_receive_bytes_total{host=~"$host"}[5m]) '
               '+ rate(lockstep_host_network_transmit_bytes_total{host=~"$host"}[5m]))', "{{host}} {{device}}")),
        panel("Processors of the node", "How many worked, by what for; where [sensors] host = true.", "short",
              ('sum by (host, mode) (rate(lockstep_host_cpu_seconds_total{host=~"$host",mode!="idle"}[5m]))', "{{host}} {{mode}}")),
        panel("Threads of ranks", "A rank with many more than the others has started something.", "short",
              ('sum by (host, job_id, rank) (lockstep_rank_threads{host=~"$host"})', "{{host}} {{job_id}} rank {{rank}}")),
    ]),
    "communication": ("lockstep: communication", [JOB_VARIABLE], [
        panel("Exposed communication", "Share of the step, by rank. Above 30 % for ten minutes: LockstepCommOverheadHigh, docs/runbook/comm-overhead.md.", "percentunit",
              (f"job_rank:lockstep_comm_exposed:ratio_rate5m{{{JOB}}}", "rank {{rank}}")),
        panel("Exposed communication of the job", "Mean over ranks.", "percentunit",
              (f"avg by (job_id) (job_rank:lockstep_comm_exposed:ratio_rate5m{{{JOB}}})", "{{job_id}}")),
        panel("Bus bandwidth", "Bus bytes over seconds of NCCL's operations, by group and operation.", "Bps",
              (f"sum by (pg, op) (rate(lockstep_collective_bus_bytes_total{{{JOB}}}[5m])) "
               f"/ (sum by (pg, op) (rate(lockstep_collective_seconds_total{{{JOB}}}[5m])) > 0)", "{{pg}} {{op}}")),
        panel("Bytes a second", "By group and operation, of all ranks.", "Bps",
              (f"sum by (pg, op) (rate(lockstep_collective_bytes_total{{{JOB}}}[5m]))", "{{pg}} {{op}}")),
        panel("Calls a second", "By group and operation, of all ranks.", "ops",
              (f"sum by (pg, op) (rate(lockstep_collective_calls_total{{{JOB}}}[5m]))", "{{pg}} {{op}}")),
        panel("Operations under way", "Called and not ended, by group: of the rank with most.", "short",
              (f"max by (job_id, pg) (lockstep_collective_enqueued_total{{{JOB}}} - lockstep_collective_completed_total{{{JOB}}})", "{{pg}}")),
        panel("Oldest operation under way", "By group: what grows without end hangs, docs/runbook/hang.md.", "s",
              (f"max by (job_id, pg) (lockstep_collective_oldest_inflight_seconds{{{JOB}}})", "{{pg}}")),
    ]),
    "gpu": ("lockstep: GPU health", [variable("host", "Host", "label_values(lockstep_gpus_visible, host)")], [
        panel("GPUs", "There, and how many there should be.", "short",
              ('sum by (host) (lockstep_gpus_visible{host=~"$host"})', "{{host}}"),
              ('sum by (host) (lockstep_gpus_expected{host=~"$host"})', "{{host}} expected"), width=8),
        panel("Xid events", "Of the last hour, by code: docs/runbook/xid.md.", "short",
              ('sum by (host, gpu, xid) (increase(lockstep_gpu_xid_events_total{host=~"$host"}[1h]))', "{{host}} GPU {{gpu}} Xid {{xid}}"), width=8),
        panel("Memory errors", "Of the last hour: docs/runbook/gpu-memory-errors.md.", "short",
              ('sum by (host, gpu, error) (increase(lockstep_gpu_ecc_errors_total{host=~"$host"}[1h]))', "{{host}} GPU {{gpu}} {{error}}"), width=8),
        panel("Busy", "Share of time in which a kernel ran.", "percentunit",
              ('lockstep_gpu_utilization_ratio{host=~"$host"}', "{{host}} GPU {{gpu}}")),
        panel("Memory in use", "By GPU and MIG instance.", "bytes", ('lockstep_gpu_memory_used_bytes{host=~"$host"}', "{{host}} GPU {{gpu}} {{gi}}")),
        panel("Temperature", "Hottest sensor.", "celsius",
              ('max by (host, gpu) (lockstep_gpu_temperature_celsius{host=~"$host"})', "{{host}} GPU {{gpu}}"), width=8),
        panel("Power", "From the energy used.", "watt",
              ('sum by (host, gpu) (rate(lockstep_gpu_energy_joules_total{host=~"$host"}[5m]))', "{{host}} GPU {{gpu}}"), width=8),
        panel("Clocks held down", "Share of time, by reason: docs/runbook/throttling.md.", "percentunit",
              ('sum by (host, gpu, reason) (rate(lockstep_gpu_throttle_seconds_total{host=~"$host"}[5m]))', "{{host}} GPU {{gpu}} {{reason}}"), width=8),
        panel("NVLink", "Bytes a second, both ways, and errors.", "Bps",
              ('sum by (host, gpu) (rate(lockstep_gpu_nvlink_receive_bytes_total{host=~"$host"}[5m]) '
               '+ rate(lockstep_gpu_nvlink_transmit_bytes_total{host=~"$host"}[5m]))', "{{host}} GPU {{gpu}}"),
              ('sum by (host, gpu, error) (rate(lockstep_gpu_nvlink_errors_total{host=~"$host"}[5m]))', "{{host}} GPU {{gpu}} {{error}} errors")),
        panel("PCIe", "Bytes a second, both ways.", "Bps",
              ('sum by (host, gpu) (rate(lockstep_gpu_pcie_receive_bytes_total{host=~"$host"}[5m]) '
               '+ rate(lockstep_gpu_pcie_transmit_bytes_total{host=~"$host"}[5m]))', "{{host}} GPU {{gpu}}")),
        panel("Network ports", "Bytes a second of InfiniBand and RoCE ports, both ways.", "Bps",
              ('sum by (host, device, port) (rate(lockstep_ib_port_receive_bytes_total{host=~"$host"}[5m]) '
               '+ rate(lockstep_ib_port_transmit_bytes_total{host=~"$host"}[5m]))', "{{host}} {{device}}/{{port}}")),
        panel("Errors of network ports", "A second: docs/runbook/infiniband.md.", "ops",
              ('sum by (host, device, port, error) (rate(lockstep_ib_port_errors_total{host=~"$host"}[5m]))', "{{host}} {{device}}/{{port}} {{error}}")),
    ]),
    "serving": ("lockstep: serving", [MODEL_VARIABLE], [
        panel("Requests a second", "Ended ones, and those that failed.", "reqps",
              ('sum by (model) (rate(lockstep_serving_requests_total{model=~"$model"}[5m]))', "{{model}}"),
              ('sum by (model) (rate(lockstep_serving_request_failures_total{model=~"$model"}[5m]))', "{{model}} failed"), width=8),
        panel("Failed", "Share of requests. Above 5 % for five minutes: docs/runbook/serving-errors.md.", "percentunit",
              ('job_model:lockstep_serving_failures:ratio_rate5m{model=~"$model"}', "{{model}}"), width=8),
        panel("Under way", "Requests that have begun and not ended.", "short",
              ('sum by (model) (lockstep_serving_requests_running{model=~"$model"})', "{{model}}"), width=8),
        panel("Latency of the last minute", "Quantiles, from begin to end.", "s",
              ('max by (model, quantile) (lockstep_serving_recent_request_duration_seconds{model=~"$model"})', "{{model}} P{{quantile}}")),
        panel("Latency from histograms", "P50, P95, P99 of five minutes, over all nodes.", "s",
              *((f'histogram_quantile({q}, sum by (model, le) (rate(lockstep_serving_request_duration_seconds_bucket{{model=~"$model"}}[5m])))',
                 f"{{{{model}}}} P{round(q * 100)}") for q in (0.5, 0.95, 0.99)),
              ('min by (model) (lockstep_serving_slo_request_duration_seconds{model=~"$model"})', "{{model}} objective"), dashed="objective"),
        panel("Time to first token", "Quantiles of the last minute, and the objective: docs/runbook/serving-latency.md.", "s",
              ('max by (model, quantile) (lockstep_serving_recent_time_to_first_token_seconds{model=~"$model"})', "{{model}} P{{quantile}}"),
              ('min by (model) (lockstep_serving_slo_time_to_first_token_seconds{model=~"$model"})', "{{model}} objective"), width=8, dashed="objective"),
        panel("Between tokens", "P50 and P99 of five minutes.", "s",
              *((f'histogram_quantile({q}, sum by (model, le) (rate(lockstep_serving_inter_token_latency_seconds_bucket{{model=~"$model"}}[5m])))',
                 f"{{{{model}}}} P{round(q * 100)}") for q in (0.5, 0.99)), width=8),
        panel("Tokens a second", "Outputs, and of engines the prompts' too.", "short",
              ('sum by (model) (rate(lockstep_serving_generation_tokens_total{model=~"$model"}[5m]))', "{{model}}"),
              ('sum by (model) (rate(lockstep_serving_prompt_tokens_total{model=~"$model"}[5m]))', "{{model}} prompts"), width=8),
        panel("Where a request's time goes", "P95 of five minutes of an engine's phases.", "s",
              *((f'histogram_quantile(0.95, sum by (model, le) (rate(lockstep_serving_{phase}_time_seconds_bucket{{model=~"$model"}}[5m])))',
                 f"{{{{model}}}} {phase}") for phase in ("queue", "prefill", "decode")), width=8),
        panel("Waiting, and put back", "Requests in engines' queues; preemptions a second.", "short",
              ('sum by (model) (lockstep_serving_requests_waiting{model=~"$model"})', "{{model}} waiting"),
              ('sum by (model) (rate(lockstep_serving_preemptions_total{model=~"$model"}[5m]))', "{{model}} preemptions a second"),
              ('sum by (model) (rate(lockstep_serving_requests_aborted_total{model=~"$model"}[5m]))', "{{model}} given up a second"), width=8),
        panel("Key-value cache in use", "Of engines: near 1, requests are put back.", "percentunit",
              ('max by (model) (lockstep_serving_kv_cache_usage_ratio{model=~"$model"})', "{{model}}"), width=8),
    ]),
    "lockstep": ("lockstep itself", [], [
        panel("Processor time", "Of each daemon: share of one processor.", "percentunit",
              ('rate(process_cpu_seconds_total{job="lockstep"}[5m])', "{{instance}}"), width=8),
        panel("Memory", "Resident.", "bytes", ('process_resident_memory_bytes{job="lockstep"}', "{{instance}}"), width=8),
        panel("Descriptors", "Open ones.", "short", ('process_open_fds{job="lockstep"}', "{{instance}}"), width=8),
        panel("Sensors", "1: the last look succeeded.", "short",
              ("min by (instance, collector) (lockstep_collector_success)", "{{instance}} {{collector}}"), kind="status-history"),
        panel("How long a look takes", "By sensor.", "s",
              ("max by (instance, collector) (lockstep_collector_duration_seconds)", "{{instance}} {{collector}}")),
        panel("Records read", "A second, by source.", "ops", ("sum by (host, source) (rate(lockstep_events_total[5m]))", "{{host}} {{source}}")),
        panel("Records lost", "A second, by reason: anything but 0 makes the rest of what is shown too low, docs/runbook/drops.md.", "ops",
              ("sum by (host, source, reason) (rate(lockstep_events_dropped_total[5m]))", "{{host}} {{source}} {{reason}}")),
        panel("Captures", "Under way.", "short", ("sum by (instance, state) (lockstep_captures_active)", "{{instance}} {{state}}")),
        panel("Requests answered", "A second, by status.", "reqps", ("sum by (code) (rate(lockstep_api_requests_total[5m]))", "{{code}}")),
    ]),
}


def grafana_panel(number, given, x, y):
    made = {"id": number, "title": given["title"], "description": given["description"], "type": given["kind"],
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "gridPos": {"x": x, "y": y, "w": given["width"], "h": given["height"]},
            "fieldConfig": {"defaults": {"unit": given["unit"]}, "overrides": [] if given["dashed"] is None else [
                {"matcher": {"id": "byRegexp", "options": f"/{given['dashed']}$/"},
                 "properties": [{"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}}]}]},
            "targets": [{"refId": chr(ord("A") + i), "expr": expression, "legendFormat": legend, "range": given["kind"] != "table",
                         "instant": given["kind"] == "table", "format": "heatmap" if given["kind"] == "heatmap" else
                         "table" if given["kind"] == "table" else "time_series",
                         # A step that a capture shows carries the capture's id.
                         **({"exemplar": True} if "step_duration" in expression else {})} for i, (expression, legend) in enumerate(given["queries"])]}
    return made


def dashboard(name):
    title, variables, panels = DASHBOARDS[name]
    made, x, y, row = [], 0, 0, 0
    for number, given in enumerate(panels, 1):
        if x + given["width"] > 24:
            x, y, row = 0, y + row, 0
        made.append(grafana_panel(number, given, x, y))
        x, row = x + given["width"], max(row, given["height"])
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {"uid": f"lockstep-{name}", "title": title, "tags": ["lockstep"], "editable": True, "schemaVersion": 38, "refresh": "15s",
            "time": {"from": "now-1h", "to": "now"}, "templating": {"list": [source, *variables]},
            "links": [{"type": "dashboards", "tags": ["lockstep"], "asDropdown": True, "title": "lockstep", "includeVars": True, "keepTime": True,
                       "icon": "external link", "targetBlank": False, "tooltip": ""}],
            "panels": made}


def text(name):
    return json.dumps(dashboard(name), indent=1) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(text(each), encoding="utf-8")
