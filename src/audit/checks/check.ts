/** The definition of a check, and the context that it can use. */
import type { SchemaComparison } from '../../database/schema.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { AddedFont } from '../../documents/pdf/added-fonts.ts';
import type { DerivedRows } from '../../log/derive.ts';
import type { JournalFindings } from './journal.ts';
import type { CheckScope, Finding } from './query.ts';
import type { RowFindings } from './rows.ts';

export interface CheckContext extends CheckScope {
  /** The fonts of this installation. PDFs that need other fonts cannot be rendered again. */
  readonly fonts: readonly AddedFont[];
  readonly schema: () => Promise<SchemaComparison>;
  /**
   * The findings of the checks of rows and of the journal. Each finding is computed once, when a check first needs it.
   */
  readonly rows: () => Promise<RowFindings>;
  readonly journal: () => Promise<JournalFindings>;
  /** The rows whose leaves are hashed again when everything is checked. */
  readonly derived: DerivedRows;
}

export interface Check {
  readonly name: string;
  /** Runs on the second connection, at the same time as the other checks. */
  readonly beside?: true;
  readonly run: (tx: Transaction, context: CheckContext) => Promise<Finding>;
}
