// What the live page says of a server's requests: node serving_page.mjs ADDRESS. Prints "ready" when the page is there; then, for each line of
// standard input, a number of requests, waits until the page counts as many and prints its first row as JSON, by the columns' titles.
import { createInterface } from 'node:readline';
import { withBrowser } from './browser.mjs';

const address = process.argv[2];

await withBrowser({}, async (context) => {
  const page = await context.newPage();
  await page.goto(`${address}#/serving`);
  await page.waitForSelector('#view-serving');
  console.log('ready');
  for await (const wanted of createInterface({ input: process.stdin })) {
    const row = await page.waitForFunction((count) => {
      const table = document.querySelector('[aria-labelledby="serving-caption"]');
      const cells = [...(table?.querySelector('tbody tr[data-row="0"]')?.cells ?? [])].map((cell) => cell.innerText.trim());
      const titles = [...(table?.querySelectorAll('thead th') ?? [])].map((cell) => cell.innerText.trim());
      const said = Object.fromEntries(titles.map((title, i) => [title, cells[i]]));
      return said.Requests?.replaceAll(',', '') === count && said;
    }, wanted);
    console.log(JSON.stringify(await row.jsonValue()));
  }
});
