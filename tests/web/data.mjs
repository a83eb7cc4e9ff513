// The page's reader of data (web/src/data): with PAGE.html OUT.json, writes everything it decodes for data_test.py to compare;
// without, checks facts about blocks that are served, damaged or asked for again.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const packages = createRequire(join(process.env.LOCKSTEP_WEB, 'package.json'));
const { build } = createRequire(packages.resolve('vite'))('esbuild');
const source = join(dirname(fileURLToPath(import.meta.url)), '../../web/src/data');
const folder = mkdtempSync(join(tmpdir(), 'lockstep-data-'));

async function load(name) {
  const outfile = join(folder, `${name}.mjs`);
  await build({ entryPoints: [join(source, name)], outfile, bundle: true, format: 'esm', platform: 'neutral', logLevel: 'error' });
  return import(pathToFileURL(outfile).href);
}

/** As much of a document as the reader needs: elements by id, and the meta element. */
function documentOf(html) {
  const elements = new Map();
  for (const [, id, raw, text] of html.matchAll(/<script type="application\/x-lockstep" id="([a-z0-9-]+)" data-raw-bytes="(\d+)">([^<]*)<\/script>/g)) {
    elements.set(id, { textContent: text, getAttribute: (name) => (name === 'data-raw-bytes' ? raw : null) });
  }
  const meta = html.match(/<meta name="lockstep-data" content="([^"]*)">/)?.[1];
  return { elements, getElementById: (id) => elements.get(id) ?? null, querySelector: () => (meta ? { getAttribute: () => meta } : null) };
}

async function dump(path, out_path) {
  const { openPage } = await load('load.ts');
  const page = await openPage(documentOf(readFileSync(path, 'utf8')));
  const steps = await page.steps();
  const table = await page.collectives();
  const levels = await page.timeline();
  const out = { document: page.document, steps: null, collectives: [], by_wait: [], levels: [], names: await page.names(), events: [] };
  if (steps) {
    out.steps = {};
    out.parts = {};
    const last = steps.shape.step_numbers.length - 1;
    const plain = (values) => [...values].map((value) => (Number.isNaN(value) ? null : value));
    for (const quantity of steps.shape.quantities) {
      out.parts[quantity] = [steps.ofRank(quantity, 1), steps.ofStep(quantity, last), steps.rankMeans(quantity), steps.stepMeans(quantity)].map(plain);
    }
    for (const quantity of steps.shape.quantities) out.steps[quantity] = plain(steps.values(quantity));
  }
  for (let i = 0; table && i < table.count; ++i) out.collectives.push({ ...table.instance(i), members: table.members(i) });
  if (table) out.by_wait = [...table.by_wait];
  for (const level of levels) out.levels.push([level.bucket_count, level.bucket_ns, [...level.shares]]);
  for (let rank = 0; rank < page.document.data.ranks.length; ++rank) {
    const tracks = await page.events(rank);
    out.events.push(tracks && tracks.map((track) => ({
      lane: track.lane, label: track.label, level_count: track.level_count, start: [...track.start_ns], duration: [...track.duration_ns],
      name: [...track.name], class: [...track.class], level: [...track.level], first: track.first, launch: track.launch && [...track.launch],
    })));
  }
  writeFileSync(out_path, JSON.stringify(out));
}

const tests = [];
const fact = (name, check) => tests.push({ name, check });

/** A block of columns, written here as docs/formats/page-data.md says. */
function columns(header, arrays) {
  const parts = [];
  let offset = 0;
  const infos = Object.entries(arrays).map(([name, values]) => {
    const width = values.BYTES_PER_ELEMENT;
    const type = values instanceof Float64Array ? 'f64' : `u${8 * width}`;
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const planes = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
    for (let i = 0; i < values.length; ++i) for (let plane = 0; plane < width; ++plane) planes[plane * values.length + i] = bytes[i * width + plane];
    parts.push(planes);
    offset += planes.length;
    return { name, type, count: values.length, offset: offset - planes.length };
  });
  const json = Buffer.from(JSON.stringify({ ...header, columns: infos }));
  const head = Buffer.alloc(Math.ceil((16 + json.length) / 8) * 8);
  head.write('LSCOLS01');
  head.writeUInt32LE(json.length, 8);
  json.copy(head, 16);
  return new Uint8Array(Buffer.concat([head, ...parts]));
}

const eventsOf = (count) => columns(
  { unit_ns: 1, shortest_event_ns: 0, tracks: [{ lane: 'device', label: 's', count, level_count: 1, sequential: true }] },
  { start: new Uint32Array(count), duration: new Uint32Array(count).fill(5), name: new Uint32Array(count), class: new Uint8Array(count),
    level: new Uint8Array(count), launch: new Uint32Array(count), long_start: new Float64Array(0), long_duration: new Float64Array(0) });

const mainOf = (rank_count) => new TextEncoder().encode(JSON.stringify({
  schema: 'lockstep.page/1', kind: 'analyze', data: { ranks: Array(rank_count).fill({}), timeline: { has_events: true }, step_matrix: null, collective_count: 3 },
}));

fact('whole numbers and fractions of every width come back', async () => {
  const { ColumnBlock } = await load('columns.ts');
  const words = Uint32Array.of(0, 1, 0x12345678, 0xffffffff);
  const numbers = Float64Array.of(0, -1.5, NaN, 1e300);
  const block = new ColumnBlock(columns({ a: 1 }, { bytes: Uint8Array.of(1, 255), halves: Uint16Array.of(258, 65535, 7), words, numbers }));
  assert.equal(block.header.a, 1);
  assert.deepEqual([...block.bytes('bytes')], [1, 255]);
  assert.deepEqual([...block.whole('halves')], [258, 65535, 7]);
  assert.deepEqual(block.whole('words'), words);
  assert.deepEqual(block.floats('numbers'), numbers);
  assert.equal(block.none('halves'), 65535);
});

fact('a damaged block is told, not shown', async () => {
  const { ColumnBlock } = await load('columns.ts');
  const whole = columns({}, { words: Uint32Array.of(1, 2, 3) });
  assert.throws(() => new ColumnBlock(new Uint8Array(0)), /damaged/);
  assert.throws(() => new ColumnBlock(whole.subarray(0, 20)), /damaged/);
  assert.throws(() => new ColumnBlock(whole.subarray(0, whole.length - 8)), /damaged/);
  const other = whole.slice();
  other[0] = 0;
  assert.throws(() => new ColumnBlock(other), /damaged/);
  assert.throws(() => new ColumnBlock(whole).whole('none'), /no none/);
});

fact('base64 comes back with and without the browser\'s own decoder', async () => {
  const { decodeBase64 } = await load('bytes.ts');
  const bytes = new Uint8Array(600_001).map((_, i) => (i * 7919) >> 3);
  const text = Buffer.from(bytes).toString('base64');
  assert.deepEqual(decodeBase64(text), bytes);
  const native = Uint8Array.fromBase64;
  Uint8Array.fromBase64 = (given) => Uint8Array.of(given.length);
  assert.deepEqual([...decodeBase64('abcd')], [4]);
  Uint8Array.fromBase64 = native;
  if (!native) delete Uint8Array.fromBase64;
});

fact('a block that is longer or shorter than it says is refused', async () => {
  const { gunzip } = await load('bytes.ts');
  const packed = new Uint8Array(gzipSync(Buffer.alloc(1000, 'a')));
  assert.equal((await gunzip(packed, 1000)).length, 1000);
  assert.equal((await gunzip(packed, null)).length, 1000);
  await assert.rejects(gunzip(packed, 999), /longer/);
  await assert.rejects(gunzip(packed, 1001), /shorter/);
  await assert.rejects(gunzip(packed.subarray(0, 20), 1000));
});

fact('a served page fetches blocks, packed or not, and knows what is not there', async () => {
  const { openPage } = await load('load.ts');
  const asked = [];
  const blocks = { 'data/main': gzipSync(mainOf(2)), 'data/events-0': eventsOf(10) };
  globalThis.fetch = async (url) => {
    asked.push(url);
    if (url === 'data/collectives') return new Response('no', { status: 500 });
    return blocks[url] ? new Response(blocks[url]) : new Response('', { status: 404 });
  };
  const page = await openPage(documentOf('<meta name="lockstep-data" content="data/">'));
  assert.equal((await page.events(0))[0].start_ns.length, 10);
  assert.equal(await page.events(1), null);
  assert.equal(await page.events(7), null);
  await assert.rejects(page.collectives(), /500/);
  assert.deepEqual(asked, ['data/main', 'data/events-0', 'data/events-1', 'data/collectives']);
});

fact('what failed is asked for again, what was read is not', async () => {
  const { readPage } = await load('load.ts');
  let asked = 0;
  const page = await readPage({
    async read(name) {
      if (name === 'main') return mainOf(1);
      if (name === 'names') {
        if (++asked === 1) throw new Error('cut off');
        return columns({}, { length: Uint32Array.of(2, 3), text: new TextEncoder().encode('äxyz').subarray(0, 5) });
      }
      return null;
    },
  });
  await assert.rejects(page.names(), /cut off/);
  assert.deepEqual(await page.names(), ['ä', 'xyz']);
  await page.names();
  assert.equal(asked, 2);
});

fact('events of few ranks are held, those looked at last', async () => {
  const { readPage } = await load('load.ts');
  const reads = [];
  const bytes = eventsOf(400_000); // 7.2 MB decoded
  const page = await readPage({ async read(name) { if (name === 'main') return mainOf(20); reads.push(name); return bytes; } });
  for (let rank = 0; rank < 20; ++rank) await page.events(rank);
  assert.equal(reads.length, 20);
  await page.events(19);
  await page.events(17);
  assert.equal(reads.length, 20);
  await page.events(0);
  assert.equal(reads.at(-1), 'events-0');
  assert.equal(reads.length, 21);
});

fact('a page without data, or of another version, says so', async () => {
  const { readPage } = await load('load.ts');
  await assert.rejects(readPage({ read: async () => null }), /no data/);
  await assert.rejects(readPage({ read: async () => new TextEncoder().encode('{"schema":"lockstep.page/9"}') }), /another version/);
});

try {
  if (process.argv[2]) {
    await dump(process.argv[2], process.argv[3]);
  } else {
    for (const { name, check } of tests) {
      await check();
      console.log(`ok ${name}`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
