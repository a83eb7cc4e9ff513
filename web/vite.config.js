import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { contentHashes } from './vite/content_hashes.js';

// Two programs, each a page of its own: reports (page.html), and the live page (live.html, `--mode live`).
// One file without a date, a path or a random name in it: the same source gives the same bytes anywhere.
export default defineConfig(({ mode }) => ({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: mode !== 'live', // The reports' page is built first.
    assetsInlineLimit: 1 << 24,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: mode === 'live' ? 'live.html' : 'page.html', output: { inlineDynamicImports: true } },
  },
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentHashes()],
}));
