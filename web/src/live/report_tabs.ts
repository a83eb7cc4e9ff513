import { capital } from '../numbers';
import { CAPTURE_STATES, HANG_STATES } from './action_words';
import type { Capture, Captures, HangLook } from './types';

const isCapture = (action: Capture | HangLook): action is Capture => 'kept_count' in action;

/**
 * Tabs in which reports open by themselves. A browser lets a page open one at a click and not a minute later, so the tab is there
 * from the click on, says how far the capture is, and becomes its report.
 */
export class ReportTabs {
  private readonly open = new Map<string, Window>();

  /** To be called in the handler of a click. Null where the browser holds tabs back: then there is the link. */
  begin(words: string): Window | null {
    const tab = window.open('', '_blank');
    if (!tab) return null;
    // An empty document takes its address, its policy and its language from nobody.
    tab.document.documentElement.lang = 'en';
    tab.document.documentElement.style.colorScheme = 'light dark';
    Object.assign(tab.document.body.style, { font: '15px system-ui, sans-serif', margin: '2rem', maxWidth: '70ch' });
    tab.document.title = words;
    const heading = tab.document.createElement('h1');
    heading.textContent = words;
    const line = tab.document.createElement('p');
    line.setAttribute('role', 'status');
    line.textContent = 'The report opens here when it is ready, as long as the live page stays open.';
    tab.document.body.replaceChildren(heading, line);
    return tab;
  }

  /** The server has given the action a name. */
  started(tab: Window | null, id: string) {
    if (tab) this.open.set(id, tab);
  }

  /** The action was refused: the page that asked says why, so the tab goes. */
  refused(tab: Window | null) {
    tab?.close();
  }

  update({ captures, hangs }: Captures) {
    for (const action of [...captures, ...hangs]) {
      const tab = this.open.get(action.id);
      if (!tab) continue;
      if (tab.closed) {
        this.open.delete(action.id);
      } else if (action.url !== null) {
        this.open.delete(action.id);
        // A report has no use for the page that it came from.
        tab.opener = null;
        tab.location.replace(new URL(action.url, location.href));
      } else {
        const words = isCapture(action) ? CAPTURE_STATES[action.state] : HANG_STATES[action.state];
        const line = tab.document.querySelector('p');
        if (line) line.textContent = `${capital(words)}${action.reason !== null ? `: ${action.reason}` : ''}.`;
        if (action.finished_unix_ns !== null) this.open.delete(action.id);
      }
    }
  }
}
