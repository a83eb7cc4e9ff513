// A server that says what `lockstep serve --hosts` says (docs/formats/live-page.md), of a job that there is not: for developing the live page,
// and for what no machine here has, such as 256 ranks with a GPU each. node fake_live_server.mjs LIVE.html [RANKS] [NODES] [MILLISECONDS]
// Prints its address. GET /fake?state=stuck|slow|well changes the job, text=... the names of nodes, break=1 ends streams and takes none until break=0,
// token=... is the one that holds from then on.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';

const [file, ranks = '8', nodes = '2', period = '1000'] = process.argv.slice(2);
const TOKEN = '0123456789abcdef0123456789abcdef';
let token = TOKEN;
let broken = false;
const RANKS = Number(ranks);
const NODES = Number(nodes);
const SLOW = Math.min(5, RANKS - 1);
const DIVIDED = 4;
const WINDOW = 128;
let state = 'slow';
let odd = 'node-';
const streams = new Set();
const actions = { captures: [], hangs: [] };

const host = (rank) => `${odd}${Math.floor((rank * NODES) / RANKS)}`;
/** Repeatable noise from -1 to 1. */
const noise = (a, b) => {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43758.5453;
  return (x - Math.floor(x)) * 2 - 1;
};
const figures = (rank, second) => {
  const slow = state !== 'well' && rank === SLOW;
  const own = (slow ? 54e6 : 28.5e6) * (1 + 0.03 * noise(rank, second)) * (second % 97 < 3 && rank % 16 === 3 ? 1.6 : 1);
  const step = 55.5e6 * (1 + 0.02 * noise(rank + 7, second));
  const communication = Math.max(0.02, (step - own) / step);
  return { step_ns: Math.round(step), own_ns: Math.round(own), communication_ratio: communication, compute_ratio: Math.max(0.05, 0.93 - communication), input_ratio: 0.04 + 0.01 * noise(rank, second + 3) };
};
/** Of a GPU that MIG divides; one instance is not measured. */
const instance = (gi, second) => ({
  gi: String(gi), uuid: `MIG-${gi}`, mig_profile: `${Math.min(gi, 3)}g.${Math.min(gi, 3)}0gb`, sm_active_ratio: gi === 10 ? null : 0.3 * gi + 0.05 * noise(gi, second),
  memory_used_bytes: gi === 10 ? null : gi * 4e9 + 1e8 * noise(gi, second), memory_total_bytes: Math.min(gi, 3) * 10e9,
});
const gpu = (rank, second) => ({
  gpu: String(rank % Math.ceil(RANKS / NODES)), uuid: `GPU-${rank}`, model: 'Fake H100', utilization_ratio: rank === 2 || rank === DIVIDED ? null : 0.9 + 0.08 * noise(rank, second),
  sm_active_ratio: rank === DIVIDED ? null : 0.7 + 0.08 * noise(rank, second), mig_instances: rank === DIVIDED ? [instance(1, second), instance(2, second), instance(10, second)] : [],
  memory_used_bytes: Math.round(61e9 + 5e9 * noise(rank, 0)), memory_total_bytes: 85e9, temperature_celsius: 58 + 12 * noise(rank, 1), power_watts: rank === 2 ? null : 620 + 60 * noise(rank, second),
  power_limit_watts: 700, xid_event_count: rank === 3 ? 1 : 0, uncorrected_ecc_error_count: 0, thermal_throttle_ratio: 0.001, is_unresponsive: false,
});
const port = (node, second) => ({
  device: 'mlx5_0', port: '1', kind: 'infiniband', is_up: node !== 1, rate_bytes_per_s: 50e9, receive_bytes_per_s: 21e9 + 1e9 * noise(node, second), transmit_bytes_per_s: 21e9 + 1e9 * noise(node, second + 9), transmit_wait_per_s: 1200, error_count: node, errors_per_s: 0,
});
const STUCK_S = 47;
const rankOf = (rank, second) => {
  const of = figures(rank, second);
  const stuck = state === 'stuck';
  const silent = rank === RANKS - 1 && RANKS > 4;
  const none = silent ? { step_ns: null, own_ns: null, communication_ratio: null, compute_ratio: null, input_ratio: null } : of;
  return {
    rank: String(rank), host: host(rank), node: host(rank), pid: String(40000 + rank), local_rank: String(rank % 8), user: 'fake', device: 'cuda:0',
    state: silent ? 'silent' : stuck ? 'stuck' : rank === SLOW && state === 'slow' ? 'slow' : state === 'slow' ? 'waits' : 'runs',
    waits_for_rank: silent || rank === SLOW || state === 'well' ? null : String(SLOW), step_count: silent ? null : (second % 1e5) - (rank === SLOW ? 1 : 0), behind_steps: silent ? null : rank === SLOW ? 1 : 0,
    progress_age_ns: silent ? null : stuck ? STUCK_S * 1e9 : 706e6, open_phase: silent || !stuck ? null : rank === SLOW ? 'input' : 'comm_exposed', open_phase_ns: silent || !stuck ? null : (STUCK_S - 1) * 1e9, is_since_start: false, steps_per_s: silent ? null : 17.9, ...none,
    phases: { input: silent ? null : 0.03, h2d: silent ? null : 0.01, forward: none.compute_ratio && none.compute_ratio * 0.4, backward: none.compute_ratio && none.compute_ratio * 0.5, optimizer: none.compute_ratio && none.compute_ratio * 0.1, comm_exposed: none.communication_ratio, checkpoint: null, validation: null, gc: null, other: silent ? null : 0.03 },
    mfu_ratio: silent ? null : 0.41, samples_per_s: null, tokens_per_s: silent ? null : 8192, torch_memory_allocated_bytes: 50e9, torch_memory_reserved_bytes: 58e9, torch_memory_peak_bytes: 60e9,
    bus_bytes_per_s: silent ? null : 180e9, oldest_collective_ns: stuck ? STUCK_S * 1e9 : 3e6, cpu_cores: 1.2, resident_memory_bytes: 4e9, thread_count: 80, storage_read_bytes_per_s: 12e6, storage_written_bytes_per_s: 0,
    gpu: gpu(rank, second), event_count: 1e6, dropped_event_count: rank === 1 ? 12 : 0, log_error_count: rank === 1 ? 3 : null, log_errors_per_s: rank === 1 ? 0 : null,
    groups: ['world', `tp${rank >> 3}`].map((name) => ({ group: name, enqueued_count: second % 1e5 - (stuck && rank === SLOW ? 1 : 0), completed_count: second % 1e5 - 1, oldest_inflight_ns: stuck ? STUCK_S * 1e9 : 3e6 })),
    values: rank === 0 ? [{ name: 'loss', value: 2.31 }] : [],
  };
};
const serving = (second) => ({
  host: host(0), model: 'fake-7b', engine: 'vllm', request_count: 10000 + second, failure_count: 12, running_count: 9, waiting_count: 4, kv_cache_usage_ratio: 0.83 + 0.01 * noise(8, second), preemption_count: 37, preemptions_per_s: 0.25, requests_per_s: 31 + 3 * noise(1, second), failure_ratio: 0.002, tokens_per_s: 2400 + 90 * noise(2, second),
  request_ns: { p50: Math.round(0.61e9 * (1 + 0.05 * noise(3, second))), p90: 0.9e9, p95: Math.round(1.1e9 * (1 + 0.08 * noise(4, second))), p99: Math.round(1.9e9 * (1 + 0.2 * noise(5, second))) },
  first_token_ns: { p50: 80e6, p90: 120e6, p95: Math.round(150e6 * (1 + 0.1 * noise(6, second))), p99: Math.round(280e6 * (1 + 0.2 * noise(7, second))) },
  inter_token_ns: { p50: 21e6, p90: 30e6, p95: Math.round(38e6 * (1 + 0.1 * noise(9, second))), p99: Math.round(74e6 * (1 + 0.2 * noise(10, second))) },
});
const job = (second) => ({
  job_id: '4711', world_size: RANKS + 1, missing_ranks: [RANKS], steps_per_s: state === 'stuck' ? 0 : 17.9 + 0.2 * noise(1, second), step_ns: figures(0, second).step_ns, own_ns: 28.5e6, step_median_ns: 55.5e6, compute_ratio: 0.57,
  communication_ratio: state === 'well' ? 0.05 : 0.45 + 0.01 * noise(0, second), input_ratio: 0.04, mfu_ratio: 0.41, samples_per_s: null, tokens_per_s: 68192, slowest_rank: state === 'well' ? null : String(SLOW), slowest_ratio: state === 'well' ? null : 1.88, stages: null,
  alarms: state === 'well' ? [] : state === 'stuck' ? [{ kind: 'collective_stuck', severity: 'critical', text: `rank 0 waits in a collective for ${STUCK_S} s`, rank: '0' }] : [
    { kind: 'exposed_communication', severity: 'warning', text: '45 % of step time is exposed communication', rank: null },
    { kind: 'straggler', severity: 'warning', text: `rank ${SLOW} takes 1.88 times the median rank's own time`, rank: String(SLOW) },
  ],
  ranks: Array.from({ length: RANKS }, (_, rank) => rankOf(rank, second)), serving: [serving(second)],
});
const view = (now_ns) => {
  const second = Math.floor(now_ns / 1e9);
  return {
    schema: 'lockstep.top/1', partial: true,
    data: {
      asked_unix_ns: now_ns, window_ns: 10e9, look_count: second % 1000,
      nodes: [
        ...Array.from({ length: NODES }, (_, node) => ({
          host: `${odd}${node}`, place: `127.0.0.1:${9000 + node}`, problem: null, silent_ns: null, version: '0.1.0', clock_offset_ns: Math.round(2e5 * noise(node, 0)),
          collectors: [{ name: 'processes', is_present: true, succeeded: true }, { name: 'nvidia', is_present: true, succeeded: true }, { name: 'infiniband', is_present: true, succeeded: node !== 1 }],
          gpus: Array.from({ length: RANKS }, (_, rank) => rank).filter((rank) => host(rank) === `${odd}${node}`).map((rank) => gpu(rank, second)), network: [port(node, second)], bad_line_count: 0, is_cut: false,
          alarms: node === 0 ? [{ kind: 'gpu_xid', severity: 'critical', text: `${odd}${node} gpu 3: 1 Xid errors since we look`, rank: null }] : [],
        })),
        { host: 'node-silent', place: '127.0.0.1:1', problem: 'cannot connect: Connection refused', silent_ns: 31e9, version: '0.1.0', clock_offset_ns: null, collectors: [], gpus: [], network: [], bad_line_count: 0, is_cut: false, alarms: [] },
      ],
      jobs: [job(second), { ...job(second), job_id: 'other', ranks: [], serving: [], alarms: [], world_size: null, missing_ranks: [], slowest_rank: null }],
    },
  };
};
const history = (now_ns) => {
  const end = Math.floor(now_ns / 1e9);
  const seconds = Array.from({ length: WINDOW }, (_, i) => end - WINDOW + i).filter((second) => second % 61 !== 0);
  const over = (of) => seconds.map(of);
  return {
    schema: 'lockstep.live-history/1', until_unix_ns: now_ns, window_ns: 10e9, bucket_ns: 1e9, times_unix_ns: seconds.map((second) => second * 1e9),
    jobs: [{
      job_id: '4711', steps_per_s: over((s) => 17.9 + 0.2 * noise(1, s)), step_ns: over((s) => figures(0, s).step_ns), tokens_per_s: over(() => 68192), samples_per_s: over(() => null),
      compute_ratio: over(() => 0.57), communication_ratio: over((s) => 0.45 + 0.01 * noise(0, s)), input_ratio: over(() => 0.04), mfu_ratio: over(() => 0.41),
      ranks: Array.from({ length: RANKS }, (_, rank) => ({
        rank: String(rank), ...Object.fromEntries(['step_ns', 'own_ns', 'compute_ratio', 'communication_ratio'].map((name) => [name, over((s) => (rank === RANKS - 1 && RANKS > 4 ? null : figures(rank, s)[name]))])),
        state: seconds.map(() => (rank === SLOW ? 'l' : 'w')).join(''),
      })),
      serving: [{ host: host(0), model: 'fake-7b', engine: 'vllm', requests_per_s: over((s) => serving(s).requests_per_s), tokens_per_s: over((s) => serving(s).tokens_per_s),
        ...Object.fromEntries(['running_count', 'waiting_count', 'kv_cache_usage_ratio', 'preemptions_per_s'].map((name) => [name, over((s) => serving(s)[name])])),
        ...Object.fromEntries(['p50', 'p95', 'p99'].flatMap((q) => [[`request_${q}_ns`, over((s) => serving(s).request_ns[q])], [`first_token_${q}_ns`, over((s) => serving(s).first_token_ns[q])], [`inter_token_${q}_ns`, over((s) => serving(s).inter_token_ns[q])]])) }],
    }],
    nodes: Array.from({ length: NODES }, (_, node) => ({
      host: `${odd}${node}`, gpus: Array.from({ length: RANKS }, (_, rank) => rank).filter((rank) => host(rank) === `${odd}${node}`)
        .map((rank) => ({ gpu: gpu(rank, 0).gpu, ...Object.fromEntries(['utilization_ratio', 'sm_active_ratio', 'memory_used_bytes', 'power_watts', 'temperature_celsius'].map((name) => [name, over((s) => gpu(rank, s)[name])])),
          mig_instances: gpu(rank, 0).mig_instances.map(({ gi }) => ({ gi, ...Object.fromEntries(['sm_active_ratio', 'memory_used_bytes'].map((name) => [name, over((s) => instance(Number(gi), s)[name])])) })) })),
      network: [{ device: 'mlx5_0', port: '1', receive_bytes_per_s: over((s) => 21e9 + 1e9 * noise(node, s)), transmit_bytes_per_s: over((s) => 21e9 + 1e9 * noise(node, s + 9)) }],
    })),
  };
};
const health = () => ({ entries: [
  { id: 2, at_unix_ns: Date.now() * 1e6 - 61e9, kind: 'xid', phase: 'happened', severity: 'critical', text: 'GPU 3 had an Xid error', host: host(0), job_id: '4711', rank: '3', device: '3' },
  { id: 1, at_unix_ns: Date.now() * 1e6 - 95e9, kind: 'node_unheard', phase: 'began', severity: 'critical', text: 'node-silent does not answer', host: 'node-silent', job_id: null, rank: null, device: null },
], dropped_count: 0 });
const alerts = () => ({ state: 'answers', problem: null, url: null, asked_unix_ns: Date.now() * 1e6, alerts: [
  { name: 'LockstepStraggler', state: 'firing', severity: 'warning', summary: `Rank ${SLOW} of job 4711 holds the others up`, runbook: 'straggler', labels: { job_id: '4711', rank: String(SLOW) }, since_unix_ns: Date.now() * 1e6 - 300e9, value: 1.88 },
] });

const STAGES = ['input', 'h2d', 'forward', 'backward', 'optimizer', 'comm_exposed', 'checkpoint', 'validation', 'gc', 'other'];
/** The slow rank holds the others up in forward, except in each eighth window, where rank 0 writes a checkpoint; nobody does while all is well. */
const stages = () => {
  const windows = Array.from({ length: 60 }, (_, i) => {
    const rank = state === 'well' ? null : i % 8 === 7 ? 0 : SLOW;
    const stage = rank === null ? null : rank === SLOW ? 'forward' : 'checkpoint';
    const frontier_ns = STAGES.map((name) => ({ input: 2e6, forward: stage === 'forward' ? 58e6 : 30e6, backward: 60e6, optimizer: 4e6, comm_exposed: 9e6, checkpoint: stage === 'checkpoint' ? 40e6 : 0, other: 1e6 })[name] ?? 0).map((ns) => 4 * ns);
    return {
      first_step: 4 * i, last_step: 4 * i + 3, step_count: 4, ns: frontier_ns.reduce((a, b) => a + b), frontier_ns, cost_ns: rank === null ? 0 : 112e6, rank, stage,
      leads: Array.from({ length: RANKS }, (_, r) => (r === rank ? String.fromCharCode(97 + STAGES.indexOf(stage)) : '.')).join(''),
    };
  });
  const verdict = state === 'well' ? { answer: 'even', rank: null, stage: null, sentence: 'No rank and no stage stands out.' }
    : { answer: 'straggler', rank: SLOW, stage: 'forward', sentence: `Rank ${SLOW} costs the job 17 % of its time in forward: 28.0 ms of each step of 164 ms.` };
  return { asked_unix_ns: Date.now() * 1e6, stages: STAGES, jobs: [
    { job_id: '4711', problem: null, is_partial: true, verdict, why: `in 53 of 60 windows the others wait for ${odd}`, next: 'look at what that rank does in forward',
      step_count: 240, ranks: Array.from({ length: RANKS }, (_, rank) => rank), windows },
    { job_id: 'serving', problem: `no running rank of job serving has recorded a step on ${odd}0` },
  ] };
};

const send = (response, name, value) => response.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
const toAll = (name, value) => streams.forEach((response) => send(response, name, value));
const meta = '<meta name="lockstep-kind" content="live"><meta name="lockstep-data" content="data/">';
const page = readFileSync(file, 'utf8').replace("connect-src 'none'", "connect-src 'self'").replace('<!--lockstep:meta-->', meta).replace('<!--lockstep:title-->', 'Live: a fake job')
  .replace('<!--lockstep:summary-->', '<p>A live page needs its program.</p>').replace('<!--lockstep:blocks-->', '');

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1');
  const json = (value, status = 200) => {
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  const known = request.headers.authorization === `Bearer ${token}` || url.searchParams.get('token') === token;
  if (url.pathname === '/') {
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    return response.end(page);
  }
  if (url.pathname === '/data/main') return json({ schema: 'lockstep.page/1', kind: 'live', version: '0.1.0', title: 'Live: a fake job', partial: false, reductions: [], ledger: [], data: { interval_ns: 1e9, job_id: null, node_count: NODES + 1, prometheus: 'own', may_capture: true } });
  if (url.pathname === '/fake') {
    state = url.searchParams.get('state') ?? state;
    odd = url.searchParams.get('text') ?? odd;
    if (url.searchParams.has('token')) token = url.searchParams.get('token') || TOKEN;
    if (url.searchParams.has('break')) broken = url.searchParams.get('break') === '1';
    if (broken || token !== TOKEN) streams.forEach((stream) => stream.destroy());
    return json({ state });
  }
  if (/^\/(captures|hangs)\//.test(url.pathname)) {
    response.writeHead(200, { 'Content-Type': 'text/html' });
    return response.end('<!doctype html><title>fake report</title><header><h1>A fake report</h1></header>');
  }
  if (!known) return json({ error: { code: 'permission_denied', message: 'no token' } }, 401);
  if (url.pathname === '/api/live/view') return json(view(Date.now() * 1e6));
  if (url.pathname === '/api/live/history') return json(history(Date.now() * 1e6));
  if (url.pathname === '/api/live/events' && broken) return request.socket.destroy();
  if (url.pathname === '/api/live/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    streams.add(response);
    response.on('close', () => streams.delete(response));
    send(response, 'captures', actions);
    send(response, 'alerts', alerts());
    send(response, 'health', health());
    send(response, 'stages', stages());
    return send(response, 'view', view(Date.now() * 1e6));
  }
  if (request.method === 'POST') {
    let text = '';
    request.on('data', (part) => (text += part));
    return request.on('end', () => {
      const body = JSON.parse(text);
      if (body.ranks?.includes(99999)) return json({ error: { code: 'not_found', message: 'There is no rank 99999.' } }, 404);
      const id = `${Date.now()}`.padStart(32, '0');
      const common = { id, job_id: body.job_id, state: 'waiting', reason: null, asked_unix_ns: Date.now() * 1e6, finished_unix_ns: null, folder: null, url: null, is_partial: false, sentence: null };
      const hang = url.pathname.endsWith('/hang');
      const action = hang
        ? { ...common, state: 'collecting', done_count: 0, total_count: NODES, kind: null, confidence: null }
        : { ...common, iterations: body.iterations ?? null, duration_ns: body.iterations ? null : (body.duration_ms ?? 500) * 1e6, ranks: body.ranks ?? null, target_count: body.ranks?.length ?? RANKS, kept_count: 0 };
      actions[hang ? 'hangs' : 'captures'].unshift(action);
      toAll('captures', actions);
      setTimeout(() => {
        if (body.iterations === 13) Object.assign(action, { state: 'failed', reason: 'no process answered', finished_unix_ns: Date.now() * 1e6 });
        else Object.assign(action, { state: 'ready', url: `${hang ? 'hangs' : 'captures'}/${id}/`, folder: '/tmp/fake', finished_unix_ns: Date.now() * 1e6, sentence: 'Rank 5 is the straggler.' }, hang ? { kind: 'straggler', confidence: 0.8 } : { kept_count: action.target_count });
        toAll('captures', actions);
      }, 3000); // A real one takes longer: who looks sees it under way.
      return json({ id }, 202);
    });
  }
  return json({ error: { code: 'not_found', message: 'nothing here' } }, 404);
});
setInterval(() => toAll('view', view(Date.now() * 1e6)), Number(period));
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/?token=${TOKEN}`));
