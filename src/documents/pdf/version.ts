/**
 * What differs between the versions of the drawing. A document is drawn again under the version that it was issued
 * with, so an edition is never changed once documents were issued under it: whatever would change its bytes becomes a
 * field here and a new edition. test/golden/drawings.test.ts holds every edition to what it drew.
 *
 * One code with a few branches, and no frozen copy of it: the editions have nearly everything in common, a copy would
 * have to be kept compiling for good, and the golden hashes show at once when a branch is missing.
 */

import { type Locale, localeOf, PLAIN } from '../locale.ts';
import type { DocumentSnapshot } from '../snapshot.ts';

export interface Edition {
  /** Amounts and dates as the partner's country writes them; before, the same for everyone. */
  readonly localised: boolean;
  /** The payment link also as a QR code. */
  readonly qrCode: boolean;
  /** The issuer's logo; before, its settings named none. */
  readonly logo: boolean;
  /** The last seal. */
  readonly seal: boolean;
  /** Totals that go to a new page take the last month's subtotal with them, as they take its last line. */
  readonly totalsTakeSubtotal: boolean;
  /** Parts of the usual space between things, tried in order until the document fits one page. */
  readonly airs: readonly number[];
}

const EDITIONS: Readonly<Record<number, Edition>> = {
  1: { localised: false, qrCode: false, logo: false, seal: false, totalsTakeSubtotal: false, airs: [1, 0.75, 0.45] },
  2: { localised: true, qrCode: true, logo: true, seal: true, totalsTakeSubtotal: true, airs: [1, 0.75, 0.6, 0.45] },
};

/** Goes up whenever the bytes of any document would change; a document remembers the version that drew it. */
export const RENDERER_VERSION = 2;

export const RENDERER_VERSIONS: readonly number[] = Object.keys(EDITIONS).map(Number);

export function editionOf(version: number): Edition {
  const edition = EDITIONS[version];
  if (edition === undefined) throw new RangeError(`there is no drawing version ${version}`);
  return edition;
}

export function localeIn(edition: Edition, snapshot: DocumentSnapshot): Locale {
  return edition.localised ? localeOf(snapshot.partner.address.country) : PLAIN;
}
