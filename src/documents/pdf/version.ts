/**
 * The version of the renderer. A document remembers the version that rendered it and is rendered again under it, byte
 * for byte, so what a released version renders never changes. A change of any document's bytes raises the version and
 * becomes a branch on it: test/golden/pdfs.test.ts compares each version with what it rendered. Versions 1 and 2 were
 * never released: their PDFs are verified only by hash.
 */
export const RENDERER_VERSION = 3;

export const RENDERER_VERSIONS: readonly number[] = [RENDERER_VERSION];

export function refuseUnknownVersion(version: number): void {
  if (!RENDERER_VERSIONS.includes(version)) throw new RangeError(`unknown renderer version: ${version}`);
}
