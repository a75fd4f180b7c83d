/**
 * The version of the renderer. A document records its version, and can be rendered again byte for byte, so the output
 * of a released version never changes. After the first release, a change of any document's bytes needs a new version,
 * and a branch on the version: test/golden/pdfs.test.ts compares the output.
 */
export const RENDERER_VERSION = 4;
