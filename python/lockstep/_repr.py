"""How runs and tables look, at a prompt and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from ._run import Run
    from ._table import Table

FINDING_LIMIT = 5
RANK_LIMIT = 32
ROW_LIMIT = 10

# Colours of the report page (web/src/styles). A notebook's own theme goes before that of the system.
_LIGHT = (
    "--ls-text:#1a1f26;--ls-muted:#565f6b;--ls-line:#d5d9df;--ls-panel:#f5f6f8;--ls-compute:#2f6db5;"
    "--ls-communication:#cf5a00;--ls-memory:#8a4a9e;--ls-idle:#8a929c;--ls-critical:#b3261e;--ls-warning:#8a5a00;"
    "--ls-info:#2f5d8a;--ls-background:#ffffff;color-scheme:light"
)
_DARK = (
    "--ls-text:#e7eaee;--ls-muted:#a3adb9;--ls-line:#323b46;--ls-panel:#1a2028;--ls-compute:#5e9fe6;"
    "--ls-communication:#f08c3e;--ls-memory:#c38fd6;--ls-idle:#77828f;--ls-critical:#ff9a8f;--ls-warning:#e8bb5a;"
    "--ls-info:#8fbbe8;--ls-background:#12161c;color-scheme:dark"
)
_DARK_HOSTS = '[data-jp-theme-light="false"] .lockstep,.vscode-dark .lockstep,[data-theme="dark"] .lockstep'
_LIGHT_HOSTS = '[data-jp-theme-light="true"] .lockstep,.vscode-light .lockstep,[data-theme="light"] .lockstep'
STYLE = (
    f"<style>.lockstep{{{_LIGHT}}}@media (prefers-color-scheme:dark){{.lockstep{{{_DARK}}}}}"
    f"{_DARK_HOSTS}{{{_DARK}}}{_LIGHT_HOSTS}{{{_LIGHT}}}"
    ".lockstep{font:14px/1.45 system-ui,sans-serif;color:var(--ls-text);background:var(--ls-background);"
    "padding:10px 14px;border:1px solid var(--ls-line);border-radius:6px;max-width:960px}"
    ".lockstep p,.lockstep ol{margin:4px 0}.lockstep .job{font-weight:600}.lockstep .muted{color:var(--ls-muted)}"
    ".lockstep .verdict{font-size:16px;font-weight:600;margin:8px 0}"
    ".lockstep .critical{color:var(--ls-critical)}.lockstep .warning{color:var(--ls-warning)}"
    ".lockstep .info{color:var(--ls-info)}.lockstep h4{margin:12px 0 4px;font-size:14px}"
    ".lockstep summary{cursor:pointer}.lockstep details{margin:2px 0}.lockstep ul{margin:2px 0 6px}"
    ".lockstep svg{display:block;max-width:100%;height:auto;font:12px system-ui,sans-serif}"
    ".lockstep svg text{fill:var(--ls-text)}.lockstep table{border-collapse:collapse;font-variant-numeric:tabular-nums;"
    "color:var(--ls-text);background:none}.lockstep th,.lockstep td{padding:2px 8px;text-align:right;"
    "border-bottom:1px solid var(--ls-line);white-space:nowrap;background:none;color:inherit}"
    ".lockstep .text{text-align:left}.lockstep .wide{overflow-x:auto}"
    ".lockstep td.text{max-width:28em;overflow:hidden;text-overflow:ellipsis}.lockstep th small{font-weight:400}</style>"
)

_PARTS = (
    ("compute_ns", "compute", "compute"),
    ("exposed_communication_ns", "exposed communication", "communication"),
    ("exposed_memory_ns", "exposed copies", "memory"),
    ("idle_ns", "idle", "idle"),
)


def run_text(run: Run) -> str:
    """The job and the verdict: the first two paragraphs of the command's first screen."""
    paragraphs = run.to_text().split("\n\n")
    lines = "\n".join(paragraph.strip("\n") for paragraph in paragraphs[:2])
    return f"{lines}\n{partial_line(run)}" if run.partial else lines


def table_text(table: Table) -> str:
    """Name, size and columns with units."""
    units = table.units
    columns = ", ".join(f"{name} [{units[name]}]" if name in units else name for name in table.columns)
    return f"<lockstep.Table {table.name}: {len(table)} rows: {columns}>"


def partial_line(run: Run) -> str:
    """What is missing, in one line."""
    errors = sum(1 for row in run.ledger.to_dicts() if row["severity"] == "error")
    missing = run.job.missing_rank_count or 0
    parts = []
    if missing:
        parts.append(f"{missing} {'rank is' if missing == 1 else 'ranks are'} missing")
    if errors:
        parts.append(f"{errors} {'file or part' if errors == 1 else 'files or parts'} could not be read")
    return f"Partial: {', '.join(parts)}; see run.ledger."


def duration(ns: float | None) -> str:
    """ "45.6 ms", as the command writes it."""
    return "-" if ns is None else _native.format_duration(round(ns))


def run_html(run: Run) -> str:
    """Verdict, findings by gain, and where each rank's time goes, without scripts or outside resources."""
    findings = run.findings().to_dicts()
    job, verdict = (paragraph.strip("\n") for paragraph in (run.to_text(width=1000).split("\n\n") + ["", ""])[:2])
    severities = {row["title"]: row["severity"] for row in findings}
    scope = "a step" if run.job.step_count else "in the window"
    job_lines = job.split("\n")
    html = [f'<div class="lockstep">{STYLE}', f'<p class="job">{escape(job_lines[0])}</p>']
    html += [f'<p class="muted">{escape(line)}</p>' for line in job_lines[1:]]
    for line in verdict.split("\n"):
        severity = severities.get(line.removeprefix("▶ "), "")
        html.append(f'<p class="verdict {severity}">{escape(line)}</p>')
    if run.partial:
        html.append(f'<p class="warning">{escape(partial_line(run))}</p>')
    if "breakdown" in run.job.passes:
        html.append(_bars(run._native.summary()))
    if findings:
        html.append("<h4>What to do first</h4><ol>")
        html += [_finding(row, scope) for row in findings[:FINDING_LIMIT]]
        html.append("</ol>")
        if len(findings) > FINDING_LIMIT:
            html.append(f'<p class="muted">{len(findings) - FINDING_LIMIT} more: run.findings()</p>')
    html.append("</div>")
    return "".join(html)


def _finding(row: dict[str, Any], scope: str) -> str:
    gain = row["gain_ns_per_step"]
    saves = f' <span class="muted">saves up to {duration(gain)} {scope}</span>' if gain else ""
    notes = "".join(f"<li>{escape(item['text'])}</li>" for item in row["evidence"])
    notes += "".join(f"<li>→ {escape(sentence)}</li>" for sentence in row["advice"])
    severity = escape(row["severity"])
    return (
        f'<li><details><summary><span class="{severity}">{severity}</span>: {escape(row["title"])}{saves}</summary>'
        f"<ul>{notes}</ul></details></li>"
    )


def _bars(summary: dict[str, Any]) -> str:
    """A stacked bar for each rank, worst first, as inline SVG."""
    ranks = [row for row in summary["ranks"] if row["basis"] != "none"]
    if not ranks:
        return '<p class="muted">No rank has device events or CPU operators to tell from.</p>'
    shown = ranks[:RANK_LIMIT]
    longest = max(row["span_ns"] for row in shown) or 1
    several = any(row["window"] for row in ranks)
    left, width, right, height, bar = 90, 560, 210, 20, 14
    used = [part for part in _PARTS if any(row[part[0]] > 0 for row in shown)]
    body = []
    for place, row in enumerate(shown):
        top = place * height
        name = f"rank {row['rank']}" + (f".{row['window']}" if several else "")
        body.append(f'<text x="{left - 8}" y="{top + 12}" text-anchor="end">{name}</text>')
        x = float(left)
        for key, label, colour in used:
            length = row[key] / longest * width
            if length > 0:
                body.append(
                    f'<rect x="{x:.1f}" y="{top + 1}" width="{length:.1f}" height="{bar}" fill="var(--ls-{colour})">'
                    f"<title>{name}: {label} {duration(row[key])}</title></rect>"
                )
            x += length
        cost = row["wait_given_ns"]
        note = f", others wait {duration(cost)}" if summary["by_wait_given"] and cost else ""
        body.append(f'<text x="{x + 8:.1f}" y="{top + 12}">{duration(row["span_ns"])}{note}</text>')
    legend, x = [], left
    top = len(shown) * height + 8
    for _, label, colour in used:
        legend.append(f'<rect x="{x}" y="{top}" width="12" height="12" fill="var(--ls-{colour})"/>')
        legend.append(f'<text x="{x + 17}" y="{top + 10}">{label}</text>')
        x += 34 + 7 * len(label)
    scope = "a step, mean of the rank's steps" if summary["scope"] == "step_mean" else "the window"
    total = f"0 0 {left + width + right} {top + 18}"
    more = f'<p class="muted">{len(ranks) - len(shown)} more ranks: run.breakdown()</p>' if len(ranks) > len(shown) else ""
    return (
        f'<h4>Where the time goes <span class="muted">{scope}</span></h4>'
        f'<svg viewBox="{total}" width="{left + width + right}" role="img" '
        f'aria-label="Time of each rank by what it was spent on, worst first">{"".join(body)}{"".join(legend)}</svg>{more}'
    )


def text_html(text: str) -> str:
    """Text of the command as it is."""
    return (
        f'<div class="lockstep">{STYLE}<pre style="margin:0;color:inherit;background:none;line-height:1.25;'
        f'overflow-x:auto">{escape(text)}</pre></div>'
    )


def _cell(value: Any, unit: str) -> str:
    if value is None:
        return '<td class="muted">-</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, (int, float)):
        if unit == "ns":
            shown = duration(value)
        elif unit == "bytes":
            shown = _native.format_bytes(round(value))
        elif unit == "bytes/s":
            shown = _native.format_rate(value)
        elif isinstance(value, float):
            shown = f"{value:.3g}"
        else:
            shown = f"{value:,}" if unit == "count" else str(value)
        return f'<td title="{value}">{escape(shown)}</td>'
    text = value if isinstance(value, str) else f"{len(value)} items" if isinstance(value, list) else str(value)
    return f'<td class="text" title="{escape(str(value)[:1000], quote=True)}">{escape(text[:200])}</td>'


def table_html(table: Table) -> str:
    """The first rows, with units; numbers as people read them, the exact ones in their tooltips."""
    columns = [table.column(name) for name in table.columns]
    head = "".join(
        f'<th class="{"" if column.kind in ("int64", "float64", "int32", "uint32", "int16", "bool") else "text"}">'
        f"{escape(column.name)}{f'<br><small>{escape(column.unit)}</small>' if column.unit else ''}</th>"
        for column in columns
    )
    rows = "".join(
        "<tr>" + "".join(_cell(row[column.name], column.unit) for column in columns) + "</tr>"
        for row in table.to_dicts(0, ROW_LIMIT)
    )
    more = len(table) - ROW_LIMIT
    note = f"{len(table)} rows" + (f", {more} of them not shown" if more > 0 else "")
    return (
        f'<div class="lockstep">{STYLE}<p><b>{escape(table.name)}</b> <span class="muted">{note}</span></p>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )
