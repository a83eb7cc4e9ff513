import type { ComponentChildren } from 'preact';

export interface ChoiceOption<T extends string> {
  value: T;
  label: string;
}

/** A few choices side by side, one of them on: radio buttons in the look of a switch. */
export function Choice<T extends string>(props: { name: string; label: string; options: readonly ChoiceOption<T>[]; value: T; onChange: (value: T) => void }) {
  return (
    <fieldset class="choice">
      <legend>{props.label}</legend>
      {props.options.map((option) => (
        <label key={option.value} class={option.value === props.value ? 'on' : undefined}>
          <input type="radio" name={props.name} value={option.value} checked={option.value === props.value} onChange={() => props.onChange(option.value)} />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}

/** One of many, such as a rank. */
export function Select<T extends string>(props: { label: string; options: readonly ChoiceOption<T>[]; value: T; onChange: (value: T) => void }) {
  return (
    <label class="select">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange((event.target as HTMLSelectElement).value as T)}>
        {props.options.map((option) => (
          <option key={option.value} value={option.value}>{option.label}</option>
        ))}
      </select>
    </label>
  );
}

export interface LegendItem {
  /** A CSS class of styles: "compute", "communication", ... or any with a fill. */
  mark: string;
  label: string;
}

/** What the colours mean, in words. */
export function Legend({ items }: { items: readonly LegendItem[] }) {
  return (
    <ul class="legend">
      {items.map((item) => (
        <li key={item.label}>
          <svg class="legend-mark" width="14" height="14" aria-hidden="true"><rect class={`fill-${item.mark}`} width="14" height="14" rx="2" /></svg>
          {item.label}
        </li>
      ))}
    </ul>
  );
}

export function Note({ kind = 'info', children }: { kind?: 'info' | 'warning'; children: ComponentChildren }) {
  return <p class={`note ${kind}`}>{children}</p>;
}

export function Waiting({ what }: { what: string }) {
  return <p class="muted" role="status">Unpacking {what} …<span class="paper-only"> (open “All on one page” before printing)</span></p>;
}
