/** Where the bytes of a page's blocks come from: script elements of the page itself, or the server that sent it. */

/**
 * Gives a block's bytes, decompressed; null when the page has no such block. `keep` off: it is asked for once, its source
 * may be let go.
 */
export interface BlockReader {
  read(name: string, keep: boolean): Promise<Uint8Array | null>;
}

/** Base64 text to bytes. In pieces, so that no second copy of a large block's text is made. */
export function decodeBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  const piece = 1 << 18; // A multiple of 4.
  let at = 0;
  for (let from = 0; from < text.length; from += piece) {
    const part = atob(text.slice(from, from + piece));
    for (let i = 0; i < part.length; ++i) bytes[at++] = part.charCodeAt(i);
  }
  return bytes;
}

/** Unpacks one gzip member. `raw_bytes` is how much it unpacks to, where that is known. */
export async function gunzip(packed: Uint8Array, raw_bytes: number | null): Promise<Uint8Array> {
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream('gzip'));
  if (raw_bytes === null || !Number.isSafeInteger(raw_bytes) || raw_bytes < 0) {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  const bytes = new Uint8Array(raw_bytes);
  const reader = stream.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > raw_bytes) throw new Error('A block of this page is longer than it says.');
    bytes.set(value, at);
    at += value.length;
  }
  if (at !== raw_bytes) throw new Error('A block of this page is shorter than it says.');
  return bytes;
}

/** Blocks within the page: <script type="application/x-lockstep" id="lockstep-NAME" data-raw-bytes="N">. */
export class EmbeddedBlocks implements BlockReader {
  constructor(private readonly root: Document) {}

  async read(name: string, keep: boolean): Promise<Uint8Array | null> {
    const element = this.root.getElementById(`lockstep-${name}`);
    if (!element) return null;
    const packed = decodeBase64((element.textContent ?? '').trim());
    const bytes = await gunzip(packed, Number(element.getAttribute('data-raw-bytes') ?? NaN));
    // What is decoded once and then held needs its text no more.
    if (!keep) element.textContent = '';
    return bytes;
  }
}

/** Blocks of a server, below `path`. It may send them with `Content-Encoding: gzip` or packed as they are. */
export class ServedBlocks implements BlockReader {
  constructor(private readonly path: string) {}

  async read(name: string): Promise<Uint8Array | null> {
    const response = await fetch(this.path + name);
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`The server does not give ${name}: ${response.status} ${response.statusText}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzip(bytes, null) : bytes;
  }
}
