/** What the commands that correct a document do afterwards: read the document, choose the exit status. */
import { documentNumbered, isUnsent } from '../../../acts/documents.ts';
import type { DocumentRow } from '../../../documents/queries.ts';
import { EXIT } from '../../../errors/refusals.ts';
import type { Context } from '../../context.ts';

export const read = ({ database }: Context, number: string): Promise<DocumentRow> =>
  database.reading((tx) => documentNumbered(tx, number));

/** Exit 4 if the e-mail of the document has not been sent. */
export const exitOf = (document: DocumentRow): number => (isUnsent(document) ? EXIT.attention : EXIT.done);
