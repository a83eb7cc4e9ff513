// Exercises a page without a script: node plain_page.mjs PAGE.html
import assert from 'node:assert/strict';
import { openWatched, violations, withBrowser } from './browser.mjs';

const [file] = process.argv.slice(2);

for (const colorScheme of ['light', 'dark']) {
  await withBrowser({ colorScheme }, async (context) => {
    const page = await openWatched(context, file);
    assert.deepEqual(await violations(page), [], colorScheme);
    // Numbers on points: axe does not look into drawings.
    const contrasts = await page.$$eval('.point-name', (names) => names.map((name) => {
      const luminance = (color) => {
        const [r, g, b] = color.match(/[\d.]+/g).map((part) => Number(part) / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const [text, ground] = [name, name.parentNode.querySelector('.point')].map((element) => luminance(getComputedStyle(element).fill));
      return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    }));
    for (const contrast of contrasts) assert.ok(contrast >= 4.5, `a number has ${contrast.toFixed(1)} : 1 against its point, ${colorScheme}`);

    // A ring goes around in its own order: each arrow ends at the border of the next rank, none crosses another.
    const rings = await page.$$eval('.rings svg', (all) => all.map((ring) => ({
      order: /: (.*)$/.exec(ring.querySelector('title').textContent.trim())[1].split(', '),
      ranks: [...ring.querySelectorAll('circle.node')].map((node) => ({ x: node.cx.baseVal.value, y: node.cy.baseVal.value, r: node.r.baseVal.value, label: node.nextElementSibling?.textContent })),
      edges: [...ring.querySelectorAll('path.edge')].map((edge) => {
        const end = edge.getPointAtLength(edge.getTotalLength());
        return { x: end.x, y: end.y, between: edge.classList.contains('between') };
      }),
      hosts: ring.querySelectorAll('path.host').length,
      cut: [...ring.querySelectorAll('text')].filter((text) => {
        const [box, frame] = [text.getBoundingClientRect(), ring.getBoundingClientRect()];
        return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
      }).map((text) => text.textContent),
    })));
    for (const { order, ranks, edges, hosts, cut } of rings) {
      assert.deepEqual(cut, [], 'names are whole');
      assert.deepEqual(ranks.map((rank) => rank.label), order);
      assert.equal(edges.length, order.length);
      edges.forEach((edge, at) => {
        const next = ranks[(at + 1) % ranks.length];
        assert.ok(Math.abs(Math.hypot(edge.x - next.x, edge.y - next.y) - next.r) < 2.5, `the arrow to rank ${next.label} ends ${Math.hypot(edge.x - next.x, edge.y - next.y)} px from its middle`);
      });
      assert.equal(hosts, edges.filter((edge) => edge.between).length, 'an arc for each stretch on one host');
    }
    console.log(`${contrasts.length} points, ${rings.length} rings, ${colorScheme}`);

    await page.setViewportSize({ width: 390, height: 844 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 1, `${wide} px wider than a phone`);
    assert.equal(await page.evaluate(() => [...document.body.children].every((element) => element.tagName === 'MAIN' || element.tagName === 'SVG')), true, 'everything is in a landmark');
    assert.deepEqual(page.trouble, []);
  });
}
