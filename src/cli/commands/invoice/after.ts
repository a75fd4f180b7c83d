/** What the commands that correct a document do afterwards: sync the payment link, read the document, choose the exit status. */
import { linkProvider } from '../../../delivery/link.ts';
import { syncPaymentLinks } from '../../../delivery/printed-link.ts';
import { readIdsOf } from '../../../delivery/queries.ts';
import { type DocumentJson, documentJson } from '../../../documents/document.ts';
import type { DocumentRow } from '../../../documents/queries.ts';
import { EXIT } from '../../../errors/refusals.ts';
import type { Context } from '../../context.ts';
import { documentNumbered } from './show.ts';

/** Syncs the payment link, which must not collect more than the current balance. */
export async function followBalance({ environment, settings, database }: Context, number: string): Promise<void> {
  const ids = await database.reading((tx) => readIdsOf(tx, [number]));
  await syncPaymentLinks({ environment, database, links: linkProvider(settings, environment) }, ids);
}

export const read = ({ database }: Context, number: string): Promise<DocumentRow> =>
  database.reading((tx) => documentNumbered(tx, number));

/** Exit 4 if the e-mail of the document has not been sent. */
export function exitOf(document: DocumentRow): number {
  const email: DocumentJson['email'] = documentJson(document).email;
  return email === null || email.status === 'sent' ? EXIT.done : EXIT.attention;
}
