import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { contentHashes } from './vite/content_hashes.js';
import { oneTemplate } from './vite/one_template.js';
import { sqlEngine } from './vite/sql_engine.js';

// Three programs, each a page of its own, by `--mode`: the report of `lockstep analyze`, the pages of the other commands, and the live page, which
// shows reports in a frame. The report's asks SQLite, in a worker that it makes from a block of its own.
const PAGES = {
  production: { program: 'main', output: 'page.html', scripts: " 'wasm-unsafe-eval'", directives: ' worker-src blob:;' },
  answer: { program: 'answer', output: 'answer.html', scripts: '', directives: '' },
  live: { program: 'live', output: 'live.html', scripts: '', directives: " frame-src 'self';" },
};

const BUILD = { target: 'es2022', outDir: 'dist', reportCompressedSize: false };

// `--mode sql`: that worker, and SQLite itself.
const SQL = {
  build: {
    ...BUILD,
    emptyOutDir: false,
    lib: { entry: 'src/sql/worker.ts', formats: ['iife'], name: 'lockstep', fileName: () => 'sql_worker.js' },
  },
  plugins: [sqlEngine()],
};

// One file without a date, a path or a random name in it: the same source gives the same bytes anywhere.
export default defineConfig(({ mode }) => mode === 'sql' ? SQL : {
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    ...BUILD,
    emptyOutDir: mode === 'production', // The reports' page is built first.
    assetsInlineLimit: 1 << 24,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: { input: 'page.html', output: { inlineDynamicImports: true } },
  },
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentHashes(), oneTemplate(PAGES[mode])],
});
