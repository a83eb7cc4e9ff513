import { createHash } from 'node:crypto';

const SCRIPT = /<script type="module"[^>]*>([\s\S]*?)<\/script>/g;
const STYLE = /<style[^>]*>([\s\S]*?)<\/style>/g;

function hashes(html, pattern) {
  return [...html.matchAll(pattern)].map((match) => `'sha256-${createHash('sha256').update(match[1]).digest('base64')}'`).join(' ');
}

/**
 * Allows exactly the script and the style of the page in its content security policy: `%script-hashes%` and
 * `%style-hashes%` become their SHA-256. Has to run when nothing changes them any more, so it is the last plugin.
 */
export function contentHashes() {
  return {
    name: 'lockstep-content-hashes',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        for (const asset of Object.values(bundle)) {
          if (asset.type !== 'asset' || !asset.fileName.endsWith('.html')) continue;
          const html = String(asset.source);
          const script = hashes(html, SCRIPT);
          const style = hashes(html, STYLE);
          if (!script || !style) this.error('the page has no inline script or no inline style');
          asset.source = html.replace('%script-hashes%', () => script).replace('%style-hashes%', () => style);
        }
      },
    },
  };
}
