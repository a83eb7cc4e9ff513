import { useEffect, useState } from 'preact/hooks';

export type Theme = 'light' | 'dark';

const KEY = 'lockstep-theme';
const listeners = new Set<() => void>();

function remembered(): Theme | null {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : null;
  } catch {
    return null; // Storage may be forbidden; the page then follows the system.
  }
}

const system = typeof matchMedia === 'undefined' ? null : matchMedia('(prefers-color-scheme: dark)');
const paper = typeof matchMedia === 'undefined' ? null : matchMedia('print');
let theme: Theme = 'light';
let printing = false;

function apply() {
  theme = printing || paper?.matches ? 'light' : (remembered() ?? (system?.matches ? 'dark' : 'light'));
  document.documentElement.dataset['theme'] = theme;
  for (const listener of [...listeners]) listener();
}

export function startTheme() {
  apply();
  system?.addEventListener('change', apply);
  paper?.addEventListener('change', apply);
}

/** Paper is light. Called around printing, as the browser tells of it in the media query only when it is too late. */
export function setPrintingTheme(on: boolean) {
  printing = on;
  apply();
}

export function toggleTheme() {
  try {
    localStorage.setItem(KEY, theme === 'dark' ? 'light' : 'dark');
    apply();
  } catch {
    theme = theme === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset['theme'] = theme;
    for (const listener of [...listeners]) listener();
  }
}

/** The theme now; what draws on a canvas draws again when it changes. */
export function useTheme(): Theme {
  const [value, set] = useState(theme);
  useEffect(() => {
    const listener = () => set(theme);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return value;
}
