import { plural } from '../numbers';
import { Answer } from '../parts/answer';
import { LedgerTable } from '../parts/ledger_table';
import type { View, ViewProps } from '../view';

function Quality({ source }: ViewProps<unknown>) {
  const { ledger } = source.document;
  const grave = ledger.filter((entry) => entry.severity !== 'info').length;
  return (
    <>
      <Answer kind={grave > 0 ? 'warning' : 'info'} sentence={grave > 0 ? `${plural(grave, 'thing')} ${grave === 1 ? 'makes' : 'make'} this answer less than whole.` : 'Everything that was given could be read.'} />
      <LedgerTable ledger={ledger} />
    </>
  );
}

/** What the command prints: it is in the page for readers without a script. */
function Text() {
  const text = document.querySelector('#summary-text pre')?.textContent ?? '';
  return (
    <section aria-label="The report as text">
      <pre class="report-text" tabIndex={0}>{text}</pre>
    </section>
  );
}

/** Views that every page of a command other than `analyze` has. */
export const answerQualityView: View<unknown> = {
  id: 'quality',
  title: 'Data quality',
  shows: 'Whether this page can be trusted: what could not be read, and what was repaired.',
  group: 'Data',
  component: Quality,
};

export const answerTextView: View<unknown> = {
  id: 'text',
  title: 'As text',
  shows: 'The same report as the command prints it, to read on and to copy from.',
  group: 'Data',
  component: Text,
};
