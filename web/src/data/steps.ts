import { ColumnBlock } from './columns';
import type { StepMatrix, StepMatrixShape, StepQuantity } from './types';

/** Whole matrices that are held decoded; others are decoded again from the block's bytes. */
const HELD = 2;

/** 6 bits of exponent, 10 of fraction; all ones = not measured. */
const short_floats = Float64Array.from({ length: 1 << 16 }, (_, bits) => {
  const exponent = bits >> 10;
  return bits === 0xffff ? NaN : exponent === 0 ? bits : (1024 + (bits & 1023)) * 2 ** (exponent - 1);
});

class Steps implements StepMatrix {
  private readonly block: ColumnBlock<{ unit_ns: Record<StepQuantity, number> }>;
  private readonly held = new Map<StepQuantity, Float64Array>();
  private readonly means = new Map<string, Float64Array>();

  constructor(bytes: Uint8Array, readonly shape: StepMatrixShape) {
    this.block = new ColumnBlock(bytes);
  }

  /** Decodes cells `first`, `first + stride`, …, `out.length` of them. No more than `out` is made for it. */
  private decode(quantity: StepQuantity, first: number, stride: number, out: Float64Array): Float64Array {
    const unit_ns = this.block.header.unit_ns[quantity];
    const [p0, p1, p2, p3] = this.block.planes(quantity) as [Uint8Array, Uint8Array, Uint8Array?, Uint8Array?];
    if (p2 && p3) {
      for (let i = 0, at = first; i < out.length; ++i, at += stride) {
        const cell = (p0[at]! | (p1[at]! << 8) | (p2[at]! << 16) | (p3[at]! << 24)) >>> 0;
        out[i] = cell === 0xffffffff ? NaN : cell * unit_ns;
      }
    } else {
      for (let i = 0, at = first; i < out.length; ++i, at += stride) out[i] = short_floats[p0[at]! | (p1[at]! << 8)]! * unit_ns;
    }
    return out;
  }

  values(quantity: StepQuantity): Float64Array {
    const { rank_indices, step_numbers } = this.shape;
    let values = this.held.get(quantity);
    if (values) {
      this.held.delete(quantity);
    } else {
      if (this.held.size >= HELD) this.held.delete(this.held.keys().next().value!);
      values = this.decode(quantity, 0, 1, new Float64Array(rank_indices.length * step_numbers.length));
    }
    this.held.set(quantity, values);
    return values;
  }

  ofRank(quantity: StepQuantity, row: number): Float64Array {
    const width = this.shape.step_numbers.length;
    return this.decode(quantity, row * width, 1, new Float64Array(width));
  }

  ofStep(quantity: StepQuantity, column: number): Float64Array {
    return this.decode(quantity, column, this.shape.step_numbers.length, new Float64Array(this.shape.rank_indices.length));
  }

  rankMeans(quantity: StepQuantity): Float64Array {
    return this.meansOf(quantity, 'rank');
  }

  stepMeans(quantity: StepQuantity): Float64Array {
    return this.meansOf(quantity, 'step');
  }

  /** One walk over the matrix, row by row; both kinds of means come from it. */
  private meansOf(quantity: StepQuantity, kind: 'rank' | 'step'): Float64Array {
    if (!this.means.has(`${kind} ${quantity}`)) {
      const width = this.shape.step_numbers.length;
      const height = this.shape.rank_indices.length;
      const row_means = new Float64Array(height).fill(NaN);
      const sums = new Float64Array(width);
      const counts = new Uint32Array(width);
      const cells = new Float64Array(width);
      for (let row = 0; row < height; ++row) {
        this.decode(quantity, row * width, 1, cells);
        let sum = 0;
        let count = 0;
        for (let column = 0; column < width; ++column) {
          const value = cells[column]!;
          if (Number.isNaN(value)) continue;
          sum += value;
          ++count;
          sums[column]! += value;
          ++counts[column]!;
        }
        if (count > 0) row_means[row] = sum / count;
      }
      this.means.set(`rank ${quantity}`, row_means);
      this.means.set(`step ${quantity}`, sums.map((sum, column) => (counts[column]! > 0 ? sum / counts[column]! : NaN)));
    }
    return this.means.get(`${kind} ${quantity}`)!;
  }
}

export function readSteps(bytes: Uint8Array, shape: StepMatrixShape): StepMatrix {
  return new Steps(bytes, shape);
}
