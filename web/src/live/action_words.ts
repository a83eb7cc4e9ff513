import { duration, plural, rankList } from '../numbers';
import type { Capture, HangLook } from './types';

export const CAPTURE_STATES: Record<Capture['state'], string> = {
  waiting: 'waits for a common start', running: 'processes trace', fetching: 'traces are fetched', analysing: 'is analysed', ready: 'ready',
  failed: 'failed', cancelled: 'cancelled', dropped: 'report dropped for newer ones; traces are kept',
};
export const HANG_STATES: Record<HangLook['state'], string> = {
  collecting: 'evidence is collected', analysing: 'is analysed', ready: 'ready', failed: 'failed', cancelled: 'cancelled', dropped: 'page dropped for newer ones; evidence is kept',
};

export function captureWhat(capture: Pick<Capture, 'ranks' | 'iterations' | 'duration_ns'>): string {
  const who = capture.ranks === null || capture.ranks.length === 0 ? 'all ranks' : rankList(capture.ranks);
  return `${who}, ${capture.iterations !== null ? plural(capture.iterations, 'iteration') : duration(capture.duration_ns ?? 500e6)}`;
}
