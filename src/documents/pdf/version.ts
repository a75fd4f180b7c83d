/**
 * The version of the renderer. A document records its version, and can be rendered again byte for byte, so the output
 * of a released version never changes. A change of any document's bytes needs a new version, and a branch on the
 * version: test/golden/pdfs.test.ts compares each version's output. Versions 1 and 2 were never released, so their PDFs
 * are verified only by hash.
 */
export const RENDERER_VERSION = 4;

export const RENDERER_VERSIONS: readonly number[] = [3, RENDERER_VERSION];

/** Whether the PDF of a document has a creditor reference, if its instructions ask for one. Null: not rendered yet. */
export const printsCreditorReference = (version: number | null) => version === null || version > 3;

export function refuseUnknownVersion(version: number) {
  if (!RENDERER_VERSIONS.includes(version)) throw new RangeError(`unknown renderer version: ${version}`);
}
