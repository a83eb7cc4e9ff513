import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const ENGINE = require.resolve('sql.js/dist/sql-wasm-browser.wasm');

/** Adds SQLite's WebAssembly as it comes in its package to what is built, and the package's licence to the worker that has its JavaScript. */
export function sqlEngine() {
  return {
    name: 'lockstep-sql-engine',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const licence = readFileSync(new URL('../LICENSE', pathToFileURL(ENGINE)), 'utf8').trim();
        for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = `/* sql.js and SQLite (https://sql.js.org)\n\n${licence}\n*/\n${chunk.code}`;
        this.emitFile({ type: 'asset', fileName: 'sqlite.wasm', source: readFileSync(ENGINE) });
      },
    },
  };
}
