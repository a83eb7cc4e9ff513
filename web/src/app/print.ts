import { options } from 'preact';

// Preact's hooks look at this, too; their types do not say so.
const frames = options as { requestAnimationFrame?: (run: () => void) => void };

/**
 * Makes a change and draws it before it returns, effects included: what `beforeprint` brings about must be on the screen
 * when its listener ends, or the paper shows what was there before.
 */
export function drawAtOnce(change: () => void) {
  const waiting: (() => void)[] = [];
  const { debounceRendering } = options;
  const { requestAnimationFrame } = frames;
  options.debounceRendering = (draw) => draw();
  frames.requestAnimationFrame = (run) => void waiting.push(run);
  try {
    change();
    // Effects may change something that is drawn, and that has effects of its own; it ends soon or not at all.
    for (let rounds = 0; waiting.length > 0 && rounds < 50; ++rounds) for (const run of waiting.splice(0)) run();
  } finally {
    options.debounceRendering = debounceRendering;
    frames.requestAnimationFrame = requestAnimationFrame;
    for (const run of waiting) setTimeout(run, 0);
  }
}
