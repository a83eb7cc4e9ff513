// The rings of a page of `lockstep nccl-log`: node rings.mjs PAGE.html
import assert from 'node:assert/strict';
import { openWatched, withBrowser } from './browser.mjs';

const [file] = process.argv.slice(2);

await withBrowser({}, async (context) => {
  const page = await openWatched(context, file);
  await page.waitForSelector('.view h2');
  await page.evaluate(() => void (location.hash = '#/rings'));
  await page.waitForSelector('.rings svg');
  // A ring goes around in its own order: each arrow ends at the border of the next rank, so that none crosses another.
  const rings = await page.$$eval('.rings svg', (all) => all.map((ring) => ({
    order: /ranks (.*)$/.exec(ring.getAttribute('aria-label'))[1].split(', '),
    ranks: [...ring.querySelectorAll('circle.ring-rank')].map((node) => ({ x: node.cx.baseVal.value, y: node.cy.baseVal.value, r: node.r.baseVal.value, label: node.nextElementSibling?.textContent })),
    edges: [...ring.querySelectorAll('g.ring-edge')].map((edge) => {
      const tip = edge.querySelector('.ring-head').getPointAtLength(0);
      return { x: tip.x, y: tip.y, between: edge.classList.contains('between') };
    }),
    hosts: ring.querySelectorAll('path.ring-host').length,
    cut: [...ring.querySelectorAll('text')].filter((text) => {
      const [box, frame] = [text.getBoundingClientRect(), ring.getBoundingClientRect()];
      return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
    }).map((text) => text.textContent),
  })));
  assert.ok(rings.length > 0);
  for (const { order, ranks, edges, hosts, cut } of rings) {
    assert.deepEqual(cut, [], 'names are whole');
    assert.deepEqual(ranks.map((rank) => rank.label), order);
    assert.equal(edges.length, order.length);
    edges.forEach((edge, at) => {
      const next = ranks[(at + 1) % ranks.length];
      assert.ok(Math.abs(Math.hypot(edge.x - next.x, edge.y - next.y) - next.r) < 2.5, `the arrow to rank ${next.label} ends at its border`);
    });
    assert.equal(hosts, edges.filter((edge) => edge.between).length, 'an arc for each stretch on one host');
  }
  // On a phone nothing is drawn smaller; the names of hosts stand below.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.waitForFunction(() => [...document.querySelectorAll('.rings svg')].every((ring) => ring.viewBox.baseVal.width < 390));
  const narrow = await page.$$eval('.rings .ring', (all) => all.map((ring) => ({
    scale: ring.querySelector('svg').getBoundingClientRect().width / ring.querySelector('svg').viewBox.baseVal.width,
    caption: ring.querySelector('figcaption').textContent,
    hosts: [...ring.querySelectorAll('path.ring-host title')].map((host) => host.textContent),
  })));
  for (const { scale, caption, hosts } of narrow) {
    assert.equal(scale, 1);
    for (const host of hosts) assert.ok(caption.includes(host), caption);
  }
  console.log(`${rings.length} rings`);
});
