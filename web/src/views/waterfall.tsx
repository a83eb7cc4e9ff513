import { useEffect, useMemo, useState } from 'preact/hooks';
import { useBlock } from '../app/blocks';
import { href, useChoice, useNumberParam, useParam } from '../app/route';
import { Drawing, fitText, SMALL_FONT, useSettledParam } from '../canvas/drawing';
import { hatch, type Palette } from '../canvas/palette';
import { instanceText, pickInstances, waterfallRows, type WaterfallRow } from '../canvas/waterfall';
import { timeTicks, tickText } from '../canvas/window';
import type { AnalyzeData, CollectiveTable } from '../data/types';
import { bytes, count, duration, plural, rate } from '../numbers';
import { Choice, Legend, Note, Select, Waiting } from '../parts/controls';
import { useWidth } from '../parts/measure';
import { Figure } from '../parts/figure';
import { Tooltip } from '../parts/tooltip';
import type { View, ViewProps } from '../view';
import { rankLabel } from './ranks';

const LISTED = 100;
const TOP = 26;
const MOST_HEIGHT = 620;

function Rows({ data, rows, label }: { data: AnalyzeData; rows: readonly WaterfallRow[]; label: string }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [rank_text, setRank] = useSettledParam('rank', '');
  const cursor = rank_text === '' ? -1 : rows.findIndex((row) => String(row.rank_index) === rank_text);
  const setCursor = (at: number) => setRank(String(rows[at]!.rank_index));
  const [scroll_wanted, setScroll] = useState(0);
  const [hover, setHover] = useState<{ x: number; y: number; row: number } | null>(null);
  const row_height = Math.max(7, Math.min(24, MOST_HEIGHT / Math.max(1, rows.length)));
  const content = rows.length * row_height;
  const plot_height = Math.min(MOST_HEIGHT, content);
  const scroll = Math.max(0, Math.min(scroll_wanted, content - plot_height));
  // The cursor is in view when the rows are others, such as from a link.
  useEffect(() => setScroll(Math.max(0, Math.min(content - plot_height, (cursor + 0.5) * row_height - plot_height / 2))), [rows]);
  const left = Math.min(150, width * 0.24);
  const right = width > 620 ? 150 : 70;
  const plot_width = Math.max(60, width - left - right);
  const widest = rows.reduce((most, row) => Math.max(most, row.uncertainty_ns ?? 0), 0);
  const first = rows.reduce((least, row) => Math.min(least, row.arrival_ns), Infinity);
  const last = rows.reduce((most, row) => Math.max(most, row.end_ns), -Infinity);
  const pad = Math.max(Math.min(widest, (last - first) * 0.3), (last - first) * 0.02, 1);
  const window_ = { start_ns: first - pad, end_ns: last + pad };
  const x_of = (time_ns: number) => left + ((time_ns - window_.start_ns) / (window_.end_ns - window_.start_ns)) * plot_width;
  const describe = (row: WaterfallRow): string =>
    `${rankLabel(data, row.rank_index)}: arrives ${row.arrival_ns === first ? 'first by its clock' : `${duration(row.arrival_ns - first)} after the first`}` +
    `${row.uncertainty_ns === null ? ' (clock not known)' : ` ± ${duration(row.uncertainty_ns)}`}, ` +
    (row.wait_ns === null ? 'waiting not measured' : `waits ${duration(row.wait_ns)}, transfers ${duration(row.transfer_ns)}`) +
    (row.place === null ? '; order of arrival unknown' : `; ${row.place} of ${rows.length} to arrive`);

  const paint = (draw: CanvasRenderingContext2D, palette: Palette) => {
    const relative = { start_ns: window_.start_ns - first, end_ns: window_.end_ns - first };
    const ticks = timeTicks(relative, plot_width);
    draw.font = SMALL_FONT;
    draw.textAlign = 'center';
    for (const value of ticks.values) {
      const x = x_of(value + first);
      draw.fillStyle = palette.grid;
      draw.fillRect(x, TOP, 1, plot_height);
      draw.fillStyle = palette.muted;
      draw.fillText(value === 0 ? '0' : `${value > 0 ? '+' : ''}${tickText(value, ticks.step_ns, Math.abs(relative.end_ns))}`, x, 12);
    }
    draw.save();
    draw.beginPath();
    draw.rect(0, TOP, width, plot_height);
    draw.clip();
    let label_free = -Infinity;
    for (let at = Math.floor(scroll / row_height); at < rows.length; ++at) {
      const row = rows[at]!;
      const y = TOP + at * row_height - scroll;
      if (y >= TOP + plot_height) break;
      const bar = Math.max(4, row_height - Math.max(2, row_height * 0.3));
      const top = y + (row_height - bar) / 2;
      if (at === cursor) {
        draw.fillStyle = palette.select;
        draw.fillRect(0, y, width, row_height);
        draw.fillStyle = palette.focus;
        draw.fillRect(0, y, 3, row_height);
      }
      const from = x_of(row.arrival_ns);
      const to = x_of(row.end_ns);
      if (row.wait_ns === null) {
        draw.fillStyle = hatch(draw, palette.muted);
        draw.fillRect(from, top, Math.max(1, to - from), bar);
        draw.strokeStyle = palette.line;
        draw.lineWidth = 1;
        draw.strokeRect(from, top, Math.max(1, to - from), bar);
      } else {
        const until = x_of(row.arrival_ns + row.wait_ns);
        draw.fillStyle = palette.panel;
        draw.fillRect(from, top, until - from, bar);
        draw.fillStyle = hatch(draw, palette.classes[1]!);
        draw.fillRect(from, top, until - from, bar);
        draw.strokeStyle = palette.classes[1]!;
        draw.lineWidth = 1;
        if (until - from > 1) draw.strokeRect(from + 0.5, top + 0.5, until - from - 1, bar - 1);
        draw.fillStyle = palette.classes[1]!;
        draw.fillRect(until, top, Math.max(1, to - until), bar);
      }
      paintArrival(draw, palette, row, top, bar);
      if (y < label_free) continue;
      label_free = y + Math.max(row_height, 13);
      const middle = y + row_height / 2;
      draw.font = SMALL_FONT;
      draw.textAlign = 'left';
      draw.fillStyle = palette.text;
      draw.fillText(fitText(draw, rankLabel(data, row.rank_index) + (data.ranks[row.rank_index]?.host ? ` · ${data.ranks[row.rank_index]!.host}` : ''), left - 16), 8, middle);
      draw.fillStyle = palette.muted;
      const order = row.place === null ? 'order ?' : `no. ${row.place}`;
      draw.fillText(fitText(draw, right > 100 ? `${row.wait_ns === null ? 'not measured' : row.wait_ns === 0 ? 'waits for none' : `waits ${duration(row.wait_ns)}`} · ${order}` : order, right - 8), left + plot_width + 8, middle);
    }
    draw.restore();
    if (content > plot_height) {
      draw.fillStyle = palette.line;
      draw.fillRect(width - 3, TOP + (scroll / content) * plot_height, 3, Math.max(12, (plot_height / content) * plot_height));
    }
  };
  /** The arrival as a mark, with what the clock may be off as an error bar; dashed and open where that is not known. */
  const paintArrival = (draw: CanvasRenderingContext2D, palette: Palette, row: WaterfallRow, top: number, bar: number) => {
    const x = x_of(row.arrival_ns);
    draw.fillStyle = palette.text;
    draw.fillRect(x - 1, top - 1, 2, bar + 2);
    const reach = row.uncertainty_ns === null ? 14 : x_of(row.arrival_ns + row.uncertainty_ns) - x;
    if (reach < 1.5) return;
    const middle = top + bar / 2;
    draw.strokeStyle = palette.text;
    draw.lineWidth = 1.25;
    draw.setLineDash(row.uncertainty_ns === null ? [2, 3] : []);
    draw.beginPath();
    draw.moveTo(x - reach, middle);
    draw.lineTo(x + reach, middle);
    if (row.uncertainty_ns !== null) {
      for (const end of [x - reach, x + reach]) {
        draw.moveTo(end, middle - 3);
        draw.lineTo(end, middle + 3);
      }
    }
    draw.stroke();
    draw.setLineDash([]);
  };
  const rowAt = (y: number) => (y < TOP || y >= TOP + plot_height ? -1 : Math.min(rows.length - 1, Math.floor((y - TOP + scroll) / row_height)));
  const open = (at: number) => {
    const row = rows[at];
    if (!row || !data.timeline) return;
    const room = (last - first) * 0.3;
    location.hash = href('timeline', { row: row.rank_index, open: row.rank_index, t: `${Math.max(0, Math.round(first - room))}-${Math.round(last + room)}` });
  };
  const move = (to: number) => {
    const at = Math.max(0, Math.min(rows.length - 1, to));
    setCursor(at);
    if (at * row_height < scroll) setScroll(at * row_height);
    else if ((at + 1) * row_height > scroll + plot_height) setScroll((at + 1) * row_height - plot_height);
  };
  const said = hover?.row ?? cursor;
  return (
    <div ref={box} class="chart">
      <Drawing
        id="waterfall-canvas"
        width={width}
        height={TOP + plot_height + 4}
        label={label}
        keys={`↑ and ↓, Home and End move from rank to rank${data.timeline ? ', Enter or a click opens the timeline there' : ''}.`}
        status={rows[said] ? describe(rows[said]!) : ''}
        paint={paint}
        pointer={data.timeline ? 'pointer' : 'default'}
        onKey={(key, event) => {
          if (key === 'ArrowDown') move(cursor + (event.shiftKey ? 10 : 1));
          else if (key === 'ArrowUp') move(cursor - (event.shiftKey ? 10 : 1));
          else if (key === 'Home') move(0);
          else if (key === 'End') move(rows.length - 1);
          else if (key === 'Enter') open(cursor);
          else return false;
          return true;
        }}
        onHover={(at) => {
          const row = at ? rowAt(at.y) : -1;
          setHover(at && row >= 0 ? { x: at.x, y: at.y + 12, row } : null);
        }}
        onClick={(at) => {
          const row = rowAt(at.y);
          if (row < 0) return;
          setCursor(row);
          open(row);
        }}
        onWheel={(_at, _dx, dy) => {
          const next = Math.max(0, Math.min(content - plot_height, scroll + dy));
          if (next === scroll) return false;
          setScroll(next);
          return true;
        }}
      />
      {hover && rows[hover.row] && <Tooltip width={width} tip={{ x: hover.x, y: hover.y, content: describe(rows[hover.row]!) }} />}
    </div>
  );
}

const ANY = 'any';

function One({ data, table }: { data: AnalyzeData; table: CollectiveTable }) {
  const [order, setOrder] = useChoice('order', ['wait', 'time'] as const, 'wait');
  const [sort, setSort] = useChoice('sort', ['arrival', 'rank', 'wait'] as const, 'arrival');
  const [operation, setOperation] = useParam('operation', ANY);
  const [step, setStep] = useNumberParam('step');
  const [last, setLast] = useNumberParam('last');
  const [chosen, setChosen] = useNumberParam('c');
  const operations = useMemo(() => {
    const names = new Set<string>();
    for (let i = 0; i < table.count && names.size < 50; ++i) names.add(table.instance(i).name);
    return [...names].sort();
  }, [table]);
  const { picked, all } = useMemo(
    () => pickInstances(table.count, table.by_wait, order, (index) => {
      if (operation === ANY && step === null && last === null) return true;
      const one = table.instance(index);
      return (operation === ANY || one.name === operation) && (step === null || one.step_number === step) && (last === null || one.last_rank_index === last);
    }, LISTED),
    [table, order, operation, step, last],
  );
  const index = chosen !== null && chosen < table.count ? chosen : picked[0];
  const rows = useMemo(() => {
    if (index === undefined) return [];
    const made = waterfallRows(table.members(index), (rank) => data.ranks[rank]?.clock.uncertainty_ns ?? null);
    if (sort === 'rank') made.sort((a, b) => a.rank_index - b.rank_index);
    if (sort === 'wait') made.sort((a, b) => (b.wait_ns ?? -1) - (a.wait_ns ?? -1) || a.rank_index - b.rank_index);
    return made;
  }, [table, index, sort]);
  const controls = (
    <>
      <Choice name="waterfall-order" label="List by" value={order} onChange={setOrder} options={[{ value: 'wait', label: 'worst wait' }, { value: 'time', label: 'time' }]} />
      <Select label="Operation" value={operations.includes(operation) ? operation : ANY} onChange={setOperation} options={[{ value: ANY, label: 'any' }, ...operations.map((name) => ({ value: name, label: name }))]} />
      <label class="select">
        <span>Step</span>
        <input type="search" class="short" inputMode="numeric" placeholder="any" value={step ?? ''} onChange={(event) => {
          const text = (event.target as HTMLInputElement).value.trim();
          setStep(/^\d{1,9}$/.test(text) ? Number(text) : null);
        }} />
      </label>
      {last !== null && <button type="button" class="tool" onClick={() => setLast(null)}>last: {rankLabel(data, last)} ✕</button>}
    </>
  );
  const instance = index === undefined ? null : table.instance(index);
  if (!instance) {
    return (
      <>
        <div class="figure-bar"><span class="tools">{controls}</span></div>
        <Note>No collective fits these choices.{last !== null ? ' In none of those on the page is this rank the last by more than the clocks’ uncertainty.' : ''}</Note>
      </>
    );
  }
  const late = instance.last_rank_index;
  const unknown = rows.filter((row) => row.place === null).length;
  const known_waits = rows.some((row) => row.wait_ns !== null);
  const summary = `${instanceText(instance)}: ${plural(rows.length, 'rank')}${instance.bytes === null ? '' : `, ${bytes(instance.bytes)}`}. ` +
    (known_waits ? `Waiting in all ${duration(instance.total_wait_ns)}, transfer ${duration(instance.transfer_ns)}${instance.busbw_bytes_per_s === null ? '' : ` at ${rate(instance.busbw_bytes_per_s)} busbw`}. ` : 'Waiting was not measured. ') +
    (late === null ? 'Which rank came last is unknown: the margin is below the clocks’ uncertainty.' : `${rankLabel(data, late)} came last, ${duration(instance.last_arrival_ns - instance.first_arrival_ns)} after the first.`) +
    (unknown > 0 && unknown < rows.length ? ` The place of ${plural(unknown, 'rank')} in the order is unknown.` : '');
  const place = picked.indexOf(index!);
  const step_to = (by: number) => {
    const next = picked[Math.max(0, Math.min(picked.length - 1, (place < 0 ? 0 : place) + by))];
    if (next !== undefined) setChosen(next);
  };
  const time = (key: 'wait_ns' | 'transfer_ns' | 'uncertainty_ns', title: string) => ({
    key, title, numeric: true, value: (row: WaterfallRow) => row[key], text: (row: WaterfallRow) => duration(row[key]),
  });
  const first = instance.first_arrival_ns;
  return (
    <>
      <div class="figure-bar waterfall-pick">
        <span class="tools">{controls}</span>
        <span class="tools">
          <button type="button" class="tool" disabled={place <= 0} onClick={() => step_to(-1)} aria-label="Collective before in the list">◂</button>
          <Select
            label={`${count(all)} ${all > picked.length ? `(first ${LISTED} listed)` : ''}`}
            value={String(index)}
            onChange={(value) => setChosen(Number(value))}
            options={[...(place < 0 ? [index!] : []), ...picked].map((each) => {
              const one = table.instance(each);
              return { value: String(each), label: `${instanceText(one)} · waits ${duration(one.total_wait_ns)}` };
            })}
          />
          <button type="button" class="tool" disabled={place >= picked.length - 1} onClick={() => step_to(1)} aria-label="Next collective in the list">▸</button>
        </span>
      </div>
      <Figure
        id="waterfall"
        title={instanceText(instance)}
        summary={summary}
        controls={<Choice name="waterfall-sort" label="Sort" value={sort} onChange={setSort} options={[{ value: 'arrival', label: 'arrival' }, { value: 'rank', label: 'rank' }, { value: 'wait', label: 'wait' }]} />}
        columns={[
          { key: 'rank', title: 'Rank', value: (row: WaterfallRow) => rankLabel(data, row.rank_index) },
          { key: 'host', title: 'Host', value: (row) => data.ranks[row.rank_index]?.host ?? null },
          { key: 'arrival_ns', title: 'Arrives after the first', numeric: true, value: (row) => row.arrival_ns - first, text: (row) => duration(row.arrival_ns - first) },
          time('uncertainty_ns', '± clock'), time('wait_ns', 'Waits'), time('transfer_ns', 'Transfers'),
          { key: 'place', title: 'Order', numeric: true, value: (row) => row.place, text: (row) => (row.place === null ? 'unknown' : String(row.place)) },
        ]}
        rows={rows}
        rowKey={(row) => String(row.rank_index)}
        sort="-arrival_ns"
        search={['rank', 'host']}
      >
        <Legend items={[{ mark: 'wait', label: 'waits for the last to arrive' }, { mark: 'communication', label: 'transfers' }, { mark: 'absent', label: 'not measured' }]} />
        <Rows data={data} rows={rows} label={`Waterfall of one collective. ${summary}`} />
        <p class="muted">The line across an arrival is the uncertainty of the rank’s clock. “order ?”: arrivals closer than that cannot be put in order.</p>
      </Figure>
    </>
  );
}

function Waterfall({ data, source }: ViewProps) {
  const table = useBlock(source, 'collectives', () => source.collectives());
  if (table.state === 'loading') return <Waiting what="the collectives" />;
  if (table.state === 'failed') return <Note kind="warning">The collectives could not be read: {table.message}</Note>;
  if (table.value === null || table.value.count === 0) return <Note>The collectives were left out of this page to keep it small.</Note>;
  return <One data={data} table={table.value} />;
}

export const waterfallView: View = {
  id: 'waterfall',
  title: 'One collective',
  shows: 'Is it late arrival or a slow network? One collective, rank by rank: when each arrives, how long it waits, how long it transfers.',
  group: 'Communication',
  missing: (data) => (data.collective_count === 0 ? 'No collective was seen on two ranks.' : null),
  component: Waterfall,
};
