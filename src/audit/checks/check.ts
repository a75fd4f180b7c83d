/** The definition of a check, and the context that it can use. */
import { Environment } from '#config/environment';
import { SchemaComparison } from '#database/schema';
import { Transaction } from '#database/transaction';
import { AddedFont } from '#documents/pdf/added-fonts';
import { ColdMonth, DerivedRows } from '#log/derive';
import { CheckScope, Finding } from './query.ts';

export interface CheckContext extends CheckScope {
  /** The fonts of this installation. PDFs that need other fonts cannot be rendered again. */
  readonly fonts: readonly AddedFont[];
  readonly schema: () => Promise<SchemaComparison>;
  /** The rows whose leaves are hashed again when everything is checked. */
  readonly derived: DerivedRows;
  /** The archived months whose quotes this transaction has whole. */
  readonly copied: DerivedRows;
  /** For the files of archived months; if absent, they are not read. */
  readonly environment: Environment | undefined;
  /** The archived months whose rows this transaction has no copy of. */
  readonly cold: readonly ColdMonth[];
}

export type Check = Readonly<{
  name: string;
  /** Runs on the second connection, at the same time as the other checks. */
  beside?: true;
  /** Has false differences without the rows of archived months. */
  needsArchives?: true;
  run: (tx: Transaction, context: CheckContext) => Promise<Finding>;
}>;
