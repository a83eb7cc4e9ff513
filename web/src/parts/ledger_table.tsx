import type { LedgerEntry } from '../data/types';
import { DataTable } from './data_table';

export const SEVERITY_ORDER: Record<LedgerEntry['severity'], number> = { error: 2, warning: 1, info: 0 };

/** What was repaired, skipped or guessed on the way; nothing where nothing was. */
export function LedgerTable({ ledger }: { ledger: readonly LedgerEntry[] }) {
  if (ledger.length === 0) return null;
  return (
    <DataTable
      id="ledger"
      caption="What was repaired, skipped or doubtful"
      columns={[
        { key: 'severity', title: 'Severity', value: (row) => SEVERITY_ORDER[row.severity], text: (row) => row.severity, render: (row) => <span class={`severity-word ${row.severity}`}>{row.severity}</span> },
        { key: 'message', title: 'What', value: (row) => row.message, width: 70 },
        { key: 'count', title: 'Count', numeric: true, value: (row) => row.count },
        { key: 'rank', title: 'Rank', numeric: true, value: (row) => row.rank },
        { key: 'source', title: 'File', value: (row) => row.source, width: 40 },
        { key: 'byte_offset', title: 'At byte', numeric: true, value: (row) => row.byte_offset },
        { key: 'advice', title: 'Advice', value: (row) => row.advice, width: 60 },
      ]}
      rows={ledger}
      rowKey={(row) => `${row.code} ${row.source} ${row.rank} ${row.byte_offset} ${row.message}`}
      sort="-severity"
      search={['message', 'source', 'advice', 'rank']}
    />
  );
}
