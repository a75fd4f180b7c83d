import { partnerIdOf } from '#actions/partner-names';
import { CommandContext, choiceArgument, Definition, EXIT, money, printable, readingNow, wrapped } from '#cli/command';
import { accountOf, ProcessorRequest } from '#processors/processors';
import { PlannedAcceptance, planQuote, QuotePlan } from '#splits/accepted';

export const define: Definition = (split, action) => {
  split
    .command('plan')
    .argument('<quote>', 'an accepted quote')
    .description('Show the processor requests for a quote and its requotes')
    .option('--partner <id>', 'required if several partners have a quote with this id')
    .option(
      '--operator-account <id>',
      'if a third party is Merchant of Record: the account of the operator or event host that charges',
    )
    .option('--platform-fee <amount>', "with an operator: the platform's own fee, charged with the quote")
    .option(
      '--requote-form <form>',
      'destination_charge (default), or as_documented, which transfers our share to the platform',
      choiceArgument('--requote-form', ['destination_charge', 'as_documented']),
    )
    .action(action(readingNow(splitPlan)));
};

async function splitPlan(
  { database, output }: CommandContext,
  quoteId: string,
  options: {
    partner?: string;
    operatorAccount?: string;
    platformFee?: string;
    requoteForm?: 'destination_charge' | 'as_documented';
  },
): Promise<number> {
  const plan = await database.reading(async (tx) =>
    planQuote(tx, {
      quoteId,
      partnerId: options.partner && (await partnerIdOf(tx, options.partner)),
      operator_account: options.operatorAccount,
      platform_fee: options.platformFee,
      requote_form: options.requoteForm,
    }),
  );
  output.print(plan, () => described(plan));
  return plan.plans.some(({ problem }) => problem !== null) ? EXIT.attention : EXIT.done;
}

function described(plan: QuotePlan) {
  return [
    `Quote ${plan.quote_id} of ${plan.partner_id}: ${plan.split === 'real_time' ? 'real-time' : 'sequential'} split ` +
      `to ${printable(plan.connected_account_id)}`,
    ...plan.plans.map(describedPlan),
  ].join('\n\n');
}

function describedPlan({ quote_id, requote_id, share, currency, requests, problem }: PlannedAcceptance) {
  const what = requote_id === null ? `Quote ${quote_id}` : `Requote ${requote_id}`;
  if (problem !== null) return wrapped(`${what} cannot be split: ${problem.reason}.`, 80).join('\n');
  if (requests.length === 0) return `${what}: nothing is charged, so it needs no request.`;
  return [`${what}: our share is ${money(share, currency)}`, ...requests.map(describedRequest)].join('\n');
}

/** A request in the form of the processor's documentation, with one line for each form parameter. */
function describedRequest({ method, path, headers, params, ...more }: ProcessorRequest) {
  // A payment method belongs to one account, so the account is named.
  const account = accountOf({ headers });
  const yours = account === undefined ? 'yours' : `yours, of ${printable(account)}`;
  return [
    `  ${method} ${path}`,
    ...Object.entries(headers).map(([name, value]) => `    ${name}: ${printable(value)}`),
    ...('add' in more ? more.add.map((name) => `    ${name}=(${yours})`) : []),
    ...fields(params).map(([name, value]) => `    ${name}=${printable(value)}`),
  ].join('\n');
}

function fields(value: object, prefix = ''): [name: string, value: string][] {
  return Object.entries(value).flatMap(([key, each]: [string, unknown]): [string, string][] => {
    const name = prefix === '' ? key : `${prefix}[${key}]`;
    return typeof each === 'object' && each !== null ? fields(each, name) : [[name, String(each)]];
  });
}
