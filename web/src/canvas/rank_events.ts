import { useEffect, useRef, useState } from 'preact/hooks';
import { begin } from '../app/pending';
import type { PageSource, TrackEvents } from '../data/types';
import { lanesOf } from './timeline_paint';

// A device's work first: it is what a reader looks for.
const LANES: readonly TrackEvents['lane'][] = ['device', 'device_annotation', 'operators', 'runtime', 'python', 'other'];

/** Single events of the ranks that are asked for now; what is no longer asked for is let go. */
export function useRankEvents(source: PageSource, wanted: readonly number[]): (rank: number) => readonly TrackEvents[] | undefined {
  const held = useRef(new Map<number, readonly TrackEvents[]>());
  const busy = useRef(new Set<number>());
  const [, redraw] = useState(0);
  const key = wanted.join(',');
  const want = useRef(new Set<number>());
  want.current = new Set(wanted);
  useEffect(() => {
    for (const rank of [...held.current.keys()]) if (!want.current.has(rank)) held.current.delete(rank);
    const next = () => {
      // Two at a time: unpacking shares the machine with drawing.
      for (const rank of want.current) {
        if (busy.current.size >= 2) return;
        if (held.current.has(rank) || busy.current.has(rank)) continue;
        busy.current.add(rank);
        const unpacked = begin();
        source.events(rank).then((tracks) => tracks ?? [], () => []).then((tracks) => {
          busy.current.delete(rank);
          if (want.current.has(rank)) {
            const sorted = [...tracks].sort((a, b) => LANES.indexOf(a.lane) - LANES.indexOf(b.lane));
            sorted.forEach(lanesOf); // Here rather than when they are drawn.
            held.current.set(rank, sorted);
            redraw((n) => n + 1);
          }
          next();
        }).finally(unpacked);
      }
    };
    next();
  }, [source, key]);
  useEffect(() => () => want.current.clear(), []);
  return (rank) => held.current.get(rank);
}
