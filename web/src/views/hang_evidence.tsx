import type { EvidenceItem, HangData, MissingItem } from '../data/hang';
import type { LedgerEntry } from '../data/types';
import { plural, rankList } from '../numbers';
import { Note } from '../parts/controls';
import { DataTable } from '../parts/data_table';
import type { View, ViewProps } from '../view';

function Evidence({ data, source }: ViewProps<HangData>) {
  const { ledger } = source.document;
  const against = data.evidence.filter((item) => item.contradicts);
  return (
    <>
      {against.length > 0 ? (
        <section aria-label="Against the verdict">
          <h3 class="section-title">Sources that disagree</h3>
          <ul class="plain-list">{against.map((item) => <li key={`${item.source} ${item.fact}`}><strong>{item.source}</strong>{item.ranks.length > 0 ? `, ${rankList(item.ranks)}` : ''}: {item.fact}</li>)}</ul>
        </section>
      ) : <Note>No evidence contradicts the verdict.</Note>}
      <DataTable
        id="evidence"
        caption="Evidence"
        columns={[
          { key: 'fact', title: 'Fact', value: (row: EvidenceItem) => row.fact, width: 90 },
          { key: 'source', title: 'Source', value: (row) => row.source },
          { key: 'ranks', title: 'Ranks', value: (row) => (row.ranks.length > 0 ? rankList(row.ranks) : null), width: 30 },
          { key: 'contradicts', title: 'Speaks', value: (row) => (row.contradicts ? 'against' : 'for'), render: (row) => <span class={row.contradicts ? 'severity-word warning' : undefined}>{row.contradicts ? 'against' : 'for'}</span> },
          { key: 'file', title: 'From', value: (row) => row.file || 'live', width: 50 },
        ]}
        rows={data.evidence}
        rowKey={(row) => `${row.source} ${row.ranks.join()} ${row.file} ${row.fact}`}
        search={['fact', 'source', 'ranks', 'file']}
        empty="There is no evidence."
      />
      {ledger.length > 0 && (
        <DataTable
          id="ledger"
          caption="What could not be read, or only in part"
          columns={[
            { key: 'severity', title: 'Severity', value: (row: LedgerEntry) => row.severity, render: (row) => <span class={`severity-word ${row.severity}`}>{row.severity}</span> },
            { key: 'message', title: 'What', value: (row) => row.message, width: 80 },
            { key: 'source', title: 'File', value: (row) => row.source, width: 50 },
            { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank, text: (row) => (row.rank === null ? '–' : String(row.rank)) },
            { key: 'advice', title: 'And then', value: (row) => row.advice, width: 50 },
          ]}
          rows={ledger}
          rowKey={(row) => `${row.code} ${row.source} ${row.rank} ${row.message}`}
        />
      )}
    </>
  );
}

/** What is equal for several ranks is said once. */
export function foldMissing(missing: readonly MissingItem[]): (MissingItem & { ranks: number[]; hosts: string[] })[] {
  const folded = new Map<string, MissingItem & { ranks: number[]; hosts: string[] }>();
  for (const item of missing) {
    const key = JSON.stringify([item.what, item.reason, item.remedy]);
    const entry = folded.get(key) ?? { ...item, ranks: [], hosts: [] };
    if (item.rank !== null) entry.ranks.push(item.rank);
    if (item.host && !entry.hosts.includes(item.host)) entry.hosts.push(item.host);
    folded.set(key, entry);
  }
  return [...folded.values()];
}

function Missing({ data }: ViewProps<HangData>) {
  const rows = foldMissing(data.missing);
  return (
    <ul class="findings">
      {rows.map((item) => (
        <li key={`${item.what} ${item.reason} ${item.remedy}`} class="finding warning">
          <div class="finding-head">
            <strong>{item.what.replaceAll('_', ' ')}{item.ranks.length > 0 ? ` of ${rankList(item.ranks)}` : ''}{item.hosts.length > 0 ? ` on ${item.hosts.length > 4 ? plural(item.hosts.length, 'host') : item.hosts.join(', ')}` : ''}</strong>
          </div>
          {item.reason && <p>{item.reason}</p>}
          {item.remedy && <><h4>How to have it</h4><p>{item.remedy}</p></>}
        </li>
      ))}
    </ul>
  );
}

export const hangEvidenceView: View<HangData> = {
  id: 'evidence',
  title: 'Evidence',
  shows: 'Every fact that the verdict rests on with its source, and those that speak against it.',
  group: 'Evidence',
  component: Evidence,
};

export const missingView: View<HangData> = {
  id: 'missing',
  title: 'What is missing',
  shows: 'What would have made the verdict surer, why it is not there, and how to have it next time.',
  group: 'Evidence',
  missing: (data) => (data.missing.length > 0 ? null : 'Nothing that would help is missing.'),
  component: Missing,
};
