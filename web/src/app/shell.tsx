import { Component, type ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { PageDocument, PageSource } from '../data/types';
import type { View } from '../view';
import { href, useRoute, ViewContext } from './route';
import { drawAtOnce } from './print';
import { setPrintingTheme, toggleTheme, useTheme } from './theme';

/** A view that fails says so, and leaves the others alone. */
class Guard extends Component<{ name: string; children: ComponentChildren }, { error: string | null }> {
  state = { error: null as string | null };
  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
  componentDidCatch(error: unknown) {
    console.error(error);
  }
  render() {
    if (this.state.error === null) return this.props.children;
    return (
      <p class="note warning" role="alert">
        “{this.props.name}” could not be drawn: {this.state.error}
      </p>
    );
  }
}

function ViewBody({ view, ids, source, stacked }: { view: View<unknown>; ids: readonly string[]; source: PageSource; stacked: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const why = view.missing?.(source.document.data) ?? null;
  useEffect(() => {
    // Readers that navigate by keyboard or by ear continue at the new view; not when the page has just been opened.
    if (!stacked && document.activeElement instanceof HTMLAnchorElement) heading.current?.focus();
  }, [view.id]);
  return (
    <ViewContext.Provider value={{ id: view.id, stacked, ids }}>
      <article class="view" id={`view-${view.id}`} aria-labelledby={`heading-${view.id}`}>
        <h2 id={`heading-${view.id}`} ref={heading} tabIndex={-1}>{view.title}</h2>
        <p class="shows">{view.shows}</p>
        {why !== null ? <p class="note info">{why}</p> : <Guard name={view.title} key={view.id}><view.component source={source} data={source.document.data} /></Guard>}
      </article>
    </ViewContext.Provider>
  );
}

function Navigation({ views, current, data, kept }: { views: readonly View<unknown>[]; current: string; data: unknown; kept: Record<string, string> }) {
  const groups = [...new Set(views.map((view) => view.group))];
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen it is one line that scrolls sideways.
    const link = bar.current?.querySelector<HTMLElement>('[aria-current]');
    if (link && bar.current!.scrollWidth > bar.current!.clientWidth) bar.current!.scrollLeft = link.offsetLeft - (bar.current!.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  return (
    <nav ref={bar} aria-label="Views">
      {groups.map((group) => (
        <div key={group} class="nav-group">
          <h2 class="nav-title">{group}</h2>
          <ul>
            {views.filter((view) => view.group === group).map((view) => (
              <li key={view.id}>
                <a
                  href={href(view.id, kept)}
                  aria-current={view.id === current ? 'page' : undefined}
                  class={view.missing?.(data) ? 'dim' : undefined}
                >
                  {view.title}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function ThemeButton() {
  const theme = useTheme();
  return (
    <button type="button" class="tool" onClick={toggleTheme} aria-label={theme === 'dark' ? 'Light theme' : 'Dark theme'}>
      {theme === 'dark' ? 'Light' : 'Dark'}
    </button>
  );
}

export interface ShellProps {
  source: PageSource;
  views: readonly View<unknown>[];
  /** Facts for the header, such as "8 ranks · V100". */
  facts: ComponentChildren;
  /** Further buttons of the header. */
  tools?: ComponentChildren;
  /** Said above all views. */
  banner?: ComponentChildren;
  /** Choices that hold in every view: links to views carry them. */
  keep?: readonly string[];
}

/** Patterns that fills refer to; each is a class of styles (fill-overlap and so on). */
function Patterns() {
  const hatch = (id: string, base: string, line: string) => (
    <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="6" height="6" class={base} />
      <rect width="2" height="6" class={line} />
    </pattern>
  );
  return (
    <svg id="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        {hatch('pattern-both', 'fill-compute', 'fill-communication')}
        {hatch('pattern-wait', 'fill-panel', 'fill-communication')}
        {hatch('pattern-absent', 'fill-panel', 'fill-line')}
      </defs>
    </svg>
  );
}

export function Shell({ source, views, facts, tools, banner, keep = [] }: ShellProps) {
  const route = useRoute();
  const document_: PageDocument<unknown> = source.document;
  const [printing, setPrinting] = useState(false);
  const all = printing || route.view === 'all';
  const ids = useMemo(() => views.map((each) => each.id), [views]);
  const view = views.find((candidate) => candidate.id === route.view) ?? views[0];
  const kept = Object.fromEntries(keep.flatMap((name) => (route.params.has(name) ? [[name, route.params.get(name)!]] : [])));
  const quality = ['quality', 'missing'].find((id) => ids.includes(id));

  useEffect(() => {
    const before = () => drawAtOnce(() => {
      setPrintingTheme(true);
      setPrinting(true);
    });
    const after = () => {
      setPrintingTheme(false);
      setPrinting(false);
    };
    window.addEventListener('beforeprint', before);
    window.addEventListener('afterprint', after);
    return () => {
      window.removeEventListener('beforeprint', before);
      window.removeEventListener('afterprint', after);
    };
  }, []);
  useEffect(() => {
    const name = all ? 'All views' : view?.title;
    document.title = name ? `${name} · ${document_.title}` : document_.title;
  }, [all, view, document_.title]);

  return (
    <>
      <Patterns />
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>
        Skip to the view
      </a>
      <header class="top">
        <div class="brand" aria-hidden="true"><svg viewBox="0 0 24 24" width="24" height="24"><rect x="2" y="4" width="13" height="3.5" rx="1" class="fill-compute" /><rect x="2" y="10.25" width="20" height="3.5" rx="1" class="fill-communication" /><rect x="2" y="16.5" width="13" height="3.5" rx="1" class="fill-compute" /></svg></div>
        <div class="top-text">
          <h1>{document_.title}</h1>
          <p class="facts">{facts}</p>
        </div>
        <div class="tools">
          {tools}
          <a class="tool" href={href('all', kept)} aria-current={route.view === 'all' ? 'page' : undefined}>All on one page</a>
          <ThemeButton />
        </div>
      </header>
      {document_.partial && (
        <aside class="banner" aria-label="Incomplete data">
          Incomplete data: ranks or parts of files are missing.{quality && <> <a href={href(quality)}>What is missing</a></>}
        </aside>
      )}
      {banner}
      <div class="columns">
        <Navigation views={views} current={all ? 'all' : (view?.id ?? '')} data={document_.data} kept={kept} />
        <main id="main" tabIndex={-1} class={all ? 'stacked' : undefined}>
          {all
            ? views.map((each) => <ViewBody key={each.id} view={each} ids={ids} source={source} stacked />)
            : view && <ViewBody key={view.id} view={view} ids={ids} source={source} stacked={false} />}
          <footer class="foot">
            lockstep {document_.version}
            {document_.reductions.length > 0 && <> · <a href={href('quality')}>parts were left out of this page</a></>}
          </footer>
        </main>
      </div>
    </>
  );
}
