/** Reads a block of columns: docs/formats/page-data.md#columns. */

interface ColumnInfo {
  name: string;
  type: 'u8' | 'u16' | 'u32' | 'f64';
  count: number;
  offset: number;
}

const MAGIC = 'LSCOLS01';
const WIDTH = { u8: 1, u16: 2, u32: 4, f64: 8 } as const;

/** A block's header and columns. Columns are decoded when they are asked for. */
export class ColumnBlock<Header> {
  readonly header: Header;
  private readonly infos = new Map<string, ColumnInfo>();
  private readonly data: Uint8Array;

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = bytes.length >= 16 ? view.getUint32(8, true) : 0;
    if (bytes.length < 16 + length || new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) {
      throw new Error('A block of this page is damaged.');
    }
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + length))) as { columns: ColumnInfo[] };
    this.header = header as unknown as Header;
    this.data = bytes.subarray(Math.ceil((16 + length) / 8) * 8);
    for (const info of header.columns) {
      if (!(info.type in WIDTH) || info.offset + info.count * WIDTH[info.type] > this.data.length) {
        throw new Error(`A block of this page is damaged in ${info.name}.`);
      }
      this.infos.set(info.name, info);
    }
  }

  private info(name: string): ColumnInfo {
    const info = this.infos.get(name);
    if (!info) throw new Error(`A block of this page has no ${name}.`);
    return info;
  }

  /** Byte `plane` (0 = lowest) of every value of a column; a view, nothing is copied. */
  private plane(info: ColumnInfo, plane: number): Uint8Array {
    const begin = info.offset + plane * info.count;
    return this.data.subarray(begin, begin + info.count);
  }

  /** The planes of a column, lowest bytes first; views of the block. */
  planes(name: string): Uint8Array[] {
    const info = this.info(name);
    return Array.from({ length: WIDTH[info.type] }, (_, plane) => this.plane(info, plane));
  }

  /** A column of bytes; a view of the block. */
  bytes(name: string): Uint8Array {
    return this.plane(this.info(name), 0);
  }

  /** A column of whole numbers below 2^32. */
  whole(name: string): Uint32Array {
    const info = this.info(name);
    const values = new Uint32Array(info.count);
    const p0 = this.plane(info, 0);
    if (info.type === 'u8') {
      values.set(p0);
    } else if (info.type === 'u16') {
      const p1 = this.plane(info, 1);
      for (let i = 0; i < values.length; ++i) values[i] = p0[i]! | (p1[i]! << 8);
    } else if (info.type === 'u32') {
      const p1 = this.plane(info, 1);
      const p2 = this.plane(info, 2);
      const p3 = this.plane(info, 3);
      for (let i = 0; i < values.length; ++i) values[i] = p0[i]! | (p1[i]! << 8) | (p2[i]! << 16) | (p3[i]! << 24);
    } else {
      throw new Error(`${name} is no column of whole numbers.`);
    }
    return values;
  }

  /** The largest whole number of the column's type: what stands for "none". */
  none(name: string): number {
    return 256 ** WIDTH[this.info(name).type] - 1;
  }

  /** A column of float64. */
  floats(name: string): Float64Array {
    const info = this.info(name);
    if (info.type !== 'f64') throw new Error(`${name} is no column of fractions.`);
    const bytes = new Uint8Array(info.count * 8);
    for (let plane = 0; plane < 8; ++plane) {
      const from = this.plane(info, plane);
      for (let i = 0, at = plane; i < from.length; ++i, at += 8) bytes[at] = from[i]!;
    }
    return new Float64Array(bytes.buffer);
  }
}
