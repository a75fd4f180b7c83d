import { commandOf } from '#actions/remedies';
import { labelled } from '#blocks';
import { CommandContext, Definition, money } from '#cli/command';
import { showing } from '#cli/report-command';
import { ListedException, listExceptions } from '#payments/exceptions';
import { Sheet } from '#sheet';

export const define: Definition = (payment, action) => {
  showing(
    payment
      .command('exceptions')
      .description('List open payment exceptions and how to resolve each; exit 4 if there are any'),
    action,
    paymentExceptions,
    { current: true },
  );
};

/** Exit 4: there is at least one item. */
async function paymentExceptions({ database, settings }: CommandContext) {
  const found = await database.reading((tx) => listExceptions(tx, settings));
  const exceptions = await Promise.all(found.map(exceptionJson));
  return {
    json: exceptions,
    sheet: () => sheetOf(exceptions),
    text: () => (exceptions.length === 0 ? 'No open exceptions.' : exceptions.map(described).join('\n\n')),
    attention: exceptions.length > 0,
  };
}

type ExceptionWithCommands = Omit<ListedException, 'sets' | 'suggestions' | 'remedies'> &
  Readonly<{
    sets: readonly (Omit<ListedException['sets'][number], 'accepts'> & { readonly command: string })[];
    suggestions: readonly (Omit<ListedException['suggestions'][number], 'accepts'> & {
      readonly command: string | null;
    })[];
    commands: readonly string[];
  }>;

/** An exception for --json, with each remedy as a command. */
export const exceptionJson = async ({
  sets,
  suggestions,
  remedies,
  ...each
}: ListedException): Promise<ExceptionWithCommands> => ({
  ...each,
  sets: await Promise.all(sets.map(async ({ accepts, ...set }) => ({ ...set, command: await commandOf(accepts) }))),
  suggestions: await Promise.all(
    suggestions.map(async ({ accepts, ...one }) => ({ ...one, command: accepts && (await commandOf(accepts)) })),
  ),
  commands: await Promise.all(
    remedies.map(async (remedy) => `${await commandOf(remedy)}${remedy.when === undefined ? '' : ` (${remedy.when})`}`),
  ),
});

const sheetOf = (exceptions: readonly ExceptionWithCommands[]): Sheet => ({
  name: 'Exceptions',
  columns: {
    exception: 'text',
    kind: 'text',
    since: 'date',
    currency: 'text',
    amount: 'amount',
    partner_id: 'text',
    partner_name: 'text',
    payer: 'text',
    payer_account: 'text',
    reference: 'text',
    text: 'text',
    why: 'text',
    commands: 'text',
  },
  rows: exceptions.map((each) => ({
    ...each,
    payer: each.payer?.name ?? '',
    payer_account: each.payer?.account ?? '',
    why: reasonsOf(each).join('; '),
    commands: each.commands.join('; '),
  })),
});

/** The reasons for the suggestions, or the reason for the exception if there are no suggestions. */
function reasonsOf({ sets, suggestions, reason }: ExceptionWithCommands): readonly string[] {
  const why = [...sets.map((each) => each.why), ...suggestions.map(suggested)];
  return why.length === 0 ? [reason] : why;
}

function described(exception: ExceptionWithCommands) {
  const { partner_id, currency, amount, since, reason, payer, text } = exception;
  const sum = amount === null || currency === null ? '' : `  ${money(amount, currency)}`;
  const from = [exception.partner_name, payer?.name, payer?.account].filter((each) => each != null && each !== '');
  const head = `${exception.exception}  ${since}${sum}${partner_id === null ? '' : `  ${partner_id}`}`;
  const why = [...exception.sets.map((each) => each.why), ...exception.suggestions.map(suggested)];
  return [
    head,
    ...(payer === null ? [] : labelled('payer', from.length === 0 ? 'unknown' : [...new Set(from)].join(', '))),
    ...(exception.reference === null ? [] : labelled('reference', exception.reference)),
    ...(text === null ? [] : labelled('bank text', text)),
    ...(why.length === 0 ? labelled('why', reason) : why.flatMap((each) => labelled('perhaps', each))),
    // Commands are not wrapped, so that they can be copied.
    ...exception.commands.map((command, index) => `  ${(index === 0 ? 'resolve with' : 'or').padEnd(12)} ${command}`),
  ].join('\n');
}

function suggested({ number, same_as, partner_id, why }: ExceptionWithCommands['suggestions'][number]) {
  const of = number === null ? `the same as payment ${same_as}` : `${number} of ${partner_id}`;
  return `${of}: ${why}`;
}
