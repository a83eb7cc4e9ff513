import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { contentHashes } from './vite/content_hashes.js';

// Three programs, each a page of its own: the report of `lockstep analyze` (page.html), the pages of the other commands (answer.html,
// `--mode answer`), and the live page (live.html, `--mode live`).
const INPUTS = { answer: 'answer.html', live: 'live.html' };

// One file without a date, a path or a random name in it: the same source gives the same bytes anywhere.
export default defineConfig(({ mode }) => ({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: !INPUTS[mode], // The reports' page is built first.
    assetsInlineLimit: 1 << 24,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: INPUTS[mode] ?? 'page.html', output: { inlineDynamicImports: true } },
  },
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentHashes()],
}));
