import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { contentHashes } from './vite/content_hashes.js';
import { oneTemplate } from './vite/one_template.js';

// Three programs, each a page of its own, by `--mode`: the report of `lockstep analyze`, the pages of the other commands, and the live page, which
// shows reports in a frame.
const PAGES = {
  production: { program: 'main', output: 'page.html', frames: '' },
  answer: { program: 'answer', output: 'answer.html', frames: '' },
  live: { program: 'live', output: 'live.html', frames: " frame-src 'self';" },
};

// One file without a date, a path or a random name in it: the same source gives the same bytes anywhere.
export default defineConfig(({ mode }) => ({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: mode === 'production', // The reports' page is built first.
    assetsInlineLimit: 1 << 24,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: 'page.html', output: { inlineDynamicImports: true } },
  },
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentHashes(), oneTemplate(PAGES[mode])],
}));
