import { ColumnBlock } from './columns';
import type { StepMatrix, StepMatrixShape, StepQuantity } from './types';

/** Quantities that are held decoded; the others are decoded again from the block's bytes. */
const HELD = 2;

/** 6 bits of exponent, 10 of fraction. */
function shortFloat(bits: number): number {
  const exponent = bits >> 10;
  return exponent === 0 ? bits : (1024 + (bits & 1023)) * 2 ** (exponent - 1);
}

export function readSteps(bytes: Uint8Array, shape: StepMatrixShape): StepMatrix {
  const block = new ColumnBlock<{ unit_ns: Record<StepQuantity, number> }>(bytes);
  const held = new Map<StepQuantity, Float64Array>();
  return {
    shape,
    values(quantity: StepQuantity): Float64Array {
      let values = held.get(quantity);
      if (!values) {
        const unit_ns = block.header.unit_ns[quantity];
        const none = block.none(quantity);
        const cells = block.whole(quantity);
        values = new Float64Array(cells.length);
        const short = none === 0xffff;
        for (let i = 0; i < cells.length; ++i) {
          const cell = cells[i]!;
          values[i] = cell === none ? NaN : (short ? shortFloat(cell) : cell) * unit_ns;
        }
        if (held.size >= HELD) held.delete(held.keys().next().value!);
      }
      held.delete(quantity);
      held.set(quantity, values);
      return values;
    },
  };
}
