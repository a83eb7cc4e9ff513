/**
 * The programs have one template, page.html: `program` is the file of src/ that it runs, `scripts` and `directives` what its policy allows besides,
 * and `output` the name of the page that is built.
 */
export function oneTemplate({ program, output, scripts, directives }) {
  return {
    name: 'lockstep-one-template',
    enforce: 'post',
    transformIndexHtml: { order: 'pre', handler: (html) => html.replace('%program%', program).replace('%scripts%', scripts).replace('%directives%', directives) },
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const page = bundle['page.html'];
        if (!page || output === 'page.html') return;
        delete bundle['page.html'];
        this.emitFile({ type: 'asset', fileName: output, source: page.source });
      },
    },
  };
}
