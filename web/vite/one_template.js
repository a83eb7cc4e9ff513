/**
 * The programs have one template, page.html: `program` is the file of src/ that it runs, `frames` what its policy says of frames, and `output` the
 * name of the page that is built.
 */
export function oneTemplate({ program, output, frames }) {
  return {
    name: 'lockstep-one-template',
    enforce: 'post',
    transformIndexHtml: { order: 'pre', handler: (html) => html.replace('%program%', program).replace('%frames%', frames) },
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
