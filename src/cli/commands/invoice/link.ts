/** `reckoner invoice link`. */
import { changeLink } from '../../../delivery/change-link.ts';
import { documentJson } from '../../../documents/document.ts';
import { refuse } from '../../../errors/refusals.ts';
import { acting, type CommandContext, type Definition } from '../../define.ts';
import { wrapped } from '../../output.ts';
import { read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('link <number>')
    .description('Show, replace or take back the link of an invoice’s payment page')
    .option('--rotate', 'make a new link; the old one opens nothing any more')
    .option('--revoke', 'take the link back; nothing opens the page until --rotate')
    .option('--reason <reason>', 'why; it is recorded')
    .action(act(acting(invoiceLink)));
};

async function invoiceLink(
  context: CommandContext,
  number: string,
  { rotate = false, revoke = false, reason = '' }: { rotate?: boolean; revoke?: boolean; reason?: string },
): Promise<void> {
  const { database, output } = context;
  const invalid = (argument: string, why: string) =>
    refuse('argument_invalid', { argument, value: reason, reason: why });
  if (rotate && revoke) throw invalid('--revoke', 'goes without --rotate');
  if ((rotate || revoke) && reason.trim() === '') throw invalid('--reason', 'say why the link is changed');
  if (!rotate && !revoke) {
    const document = await read(context, number);
    output.print(documentJson(document), () => document.payment_link ?? `${number} has no payment link.`);
    return;
  }
  const to = rotate ? 'rotate' : 'revoke';
  const document = await database.transaction((tx) => changeLink(tx, context, { number, to, reason }));
  const next = rotate
    ? `The new link is ${document.payment_link}. The kept PDF prints the old one: 'reckoner invoice resend ${number}' ` +
      'sends an e-mail with the new link.'
    : `'reckoner invoice link ${number} --rotate --reason REASON' makes a new one.`;
  output.print(documentJson(document), () =>
    wrapped(`The old link of ${number} opens nothing any more. ${next}`, 80).join('\n'),
  );
}
