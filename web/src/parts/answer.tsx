import type { ComponentChildren } from 'preact';

/** What a view has found, in a sentence, above its pictures; and what that rests on. */
export function Answer({ kind = 'info', sentence, children }: { kind?: 'info' | 'warning' | 'critical'; sentence: string; children?: ComponentChildren }) {
  return (
    <section class={`verdict answer ${kind}`}>
      <h3>{sentence}</h3>
      {children && <p class="verdict-gain">{children}</p>}
    </section>
  );
}
