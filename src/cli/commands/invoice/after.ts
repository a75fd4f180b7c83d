/** What the commands that correct a document do afterwards: sync the payment link, read the document, choose the exit status. */
import { linkProvider } from '../../../delivery/link.ts';
import { syncPaymentLinks } from '../../../delivery/printed-link.ts';
import { readIdsOf } from '../../../delivery/queries.ts';
import { type DocumentJson, documentJson } from '../../../documents/document.ts';
import type { DocumentRow } from '../../../documents/queries.ts';
import { EXIT } from '../../../errors/refusals.ts';
import type { Context } from '../../context.ts';
import { documentNumbered } from './show.ts';

/** The link behind the page must not take more than is owed by now. */
export async function followBalance({ environment, settings, database }: Context, number: string): Promise<void> {
  const ids = await database.reading((tx) => readIdsOf(tx, [number]));
  await syncPaymentLinks({ environment, database, links: linkProvider(settings, environment) }, ids);
}

export const read = ({ database }: Context, number: string): Promise<DocumentRow> =>
  database.reading((tx) => documentNumbered(tx, number));

/** Whether the document that an act leaves behind reached its partner. */
export function exitOf(document: DocumentRow): number {
  const email: DocumentJson['email'] = documentJson(document).email;
  return email === null || email.status === 'sent' ? EXIT.done : EXIT.attention;
}
