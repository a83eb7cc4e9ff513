import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';
import { contentHashes } from './vite/content_hashes.js';

// One file without a date, a path or a random name in it: the same source gives the same bytes anywhere.
export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 1 << 24,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: 'page.html', output: { inlineDynamicImports: true } },
  },
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), contentHashes()],
});
