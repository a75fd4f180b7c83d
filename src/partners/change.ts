/**
 * Changes fields of a partner's record in partners.json. The changed record goes through the same checks as a file.
 * Refusals: partner_unknown, argument_invalid.
 */
import { Refusal, refuse, refuseField } from '#errors/refusals';
import { fieldWords } from '#field-names';
import { termsOn } from './cancellation.ts';
import { cutRateOn } from './cut-rate.ts';
import { PartnerRecord, parsePartners } from './file.ts';
import { PartnerView } from './partners.sql.ts';

/** The places of the fields in the record. Those of `policy` belong to the policy that the change names. */
const PATHS = {
  ...{ name: 'name', parent: 'parent', active: 'active', currency: 'currency', timeZone: 'time_zone' },
  ...{ line1: 'address.line1', line2: 'address.line2', city: 'address.city', region: 'address.region' },
  ...{ postalCode: 'address.postal_code', country: 'address.country' },
  ...{ contactName: 'invoicing_contact.name', contactEmail: 'invoicing_contact.email' },
  ...{ contactCc: 'invoicing_contact.cc', reminderEmail: 'reminder_email', statementEmail: 'statement_email' },
  disputeEmail: 'dispute_email',
  ...{ paymentTermsDays: 'payment_terms_days', paymentTermsEndOfMonth: 'payment_terms_end_of_month' },
  ...{ paymentTermsDay: 'payment_terms_day', accountStatement: 'account_statement', feed: 'feed' },
  ...{ taxId: 'tax_id', purchaseOrder: 'purchase_order', legalNote: 'legal_note' },
  ...{ eInvoice: 'e_invoice', buyerReference: 'buyer_reference', electronicAddress: 'electronic_address' },
  ...{ arrangement: 'arrangement', arrangementFrom: 'arrangement_from', connectedAccountId: 'connected_account_id' },
  ...{ merchantOfRecord: 'merchant_of_record', split: 'split', settlementCurrencies: 'settlement_currencies' },
  ...{ connectedAccountType: 'connected_account_type', connectedAccountState: 'connected_account_state' },
  balanceTransactionsFrom: 'balance_transactions_from',
  ...{ policyName: 'policy.name', policyKind: 'policy.kind', policyActive: 'policy.active' },
  policyPurchaseOrder: 'policy.purchase_order',
  ...{ priceRate: 'policy.price.rate', priceMinimum: 'policy.price.minimum', largestPrice: 'policy.largest_price' },
} as const;

export type RecordField = keyof typeof PATHS;

/** What a field of the record is called. */
export const labelOf = (field: RecordField): string => fieldWords(PATHS[field]);

/** The fields that apply from a day on, where their problems are in the record. */
const DATED = {
  ...{ rate: 'policy.partner_cut_rate', windowDays: 'policy.cancellation.window_days' },
  ...{ afterWindow: 'policy.cancellation.after_window', cut: 'policy.cancellation.cut' },
} as const;

type Value = string | readonly string[];

/** An empty text or list clears a field. A field without a value stays as it is. */
export type RecordChange = Readonly<
  Partial<Record<RecordField, Value | undefined>> & {
    partnerId: string;
    isNew?: boolean | undefined;
    policyId?: string | undefined;
    rate?: string | undefined;
    rateFrom?: string | undefined;
    windowDays?: string | undefined;
    afterWindow?: string | undefined;
    cut?: string | undefined;
    beforeCoverOnly?: string | undefined;
    termsFrom?: string | undefined;
  }
>;

const BOOLEANS = ['active', 'payment_terms_end_of_month'];

type Tree = { [name: string]: unknown };

/** Returns the partner in the shape of partners.json, without fields that do not apply. */
export const partnerJson = (partner: PartnerView): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries({
      ...partner,
      account_statement: partner.account_statement === 'none' ? null : partner.account_statement,
      policies: partner.policies.map(({ price, ...policy }) => (price === null ? policy : { ...policy, price })),
    }).filter(([, value]) => value !== null),
  );

export function changedPartner(stored: PartnerView | undefined, change: RecordChange): PartnerRecord {
  const { partnerId, policyId, isNew = false } = change;
  if (stored === undefined && !isNew) throw refuse('partner_unknown', { partner_id: partnerId });
  if (stored !== undefined && isNew) throw refuseField('partnerId', partnerId, 'is the id of a known partner');
  const record = JSON.parse(JSON.stringify(stored ? partnerJson(stored) : { partner_id: partnerId })) as Tree;
  const policies = (record['policies'] ?? []) as Tree[];
  const known = policies.find(({ policy_id }) => policy_id === policyId);
  const policy: Tree = known ?? { policy_id: policyId };
  for (const [field, path] of Object.entries(PATHS)) {
    const value = change[field as RecordField];
    if (value === undefined) continue;
    if (!path.startsWith('policy.')) setAt(record, path, value);
    else if (policyId === undefined) throw refuseField('policyId', '', 'is missing');
    else setAt(policy, path.slice('policy.'.length), value);
  }
  setDated(policy, known === undefined, change);
  record['policies'] = known || Object.keys(policy).length === 1 ? policies : [...policies, policy];
  return recordOf(record, change);
}

function setAt(tree: Tree, path: string, value: Value) {
  const [first = '', ...rest] = path.split('.');
  if (rest.length > 0) {
    const inner = { ...(tree[first] as Tree | undefined) };
    setAt(inner, rest.join('.'), value);
    tree[first] = Object.keys(inner).length === 0 ? undefined : inner;
  } else if (value.length === 0) delete tree[first];
  else if (BOOLEANS.includes(first)) tree[first] = value === 'yes';
  else tree[first] = typeof value === 'string' ? value : value.filter((each) => each !== '');
}

/** The rate and the cancellation terms of a known policy change from a day on. */
function setDated(policy: Tree, isNew: boolean, change: RecordChange) {
  const { policyId, rate, rateFrom, windowDays, afterWindow, cut, beforeCoverOnly, termsFrom } = change;
  const dated = (field: string, day: string | undefined) => {
    if (policyId === undefined) throw refuseField('policyId', '', 'is missing');
    if (day === undefined && !isNew) throw refuseField(field, '', 'is missing: the first day of the change');
    return day;
  };
  if (rate) {
    const from = dated('rateFrom', rateFrom);
    policy['partner_cut_rate'] = from === undefined ? rate : [{ from, rate }];
  }
  if (windowDays === undefined) return;
  const from = dated('termsFrom', termsFrom);
  policy['cancellation'] =
    windowDays === ''
      ? { from, window_days: null }
      : {
          ...{ from, window_days: windowDays, after_window: afterWindow || undefined, cut: cut || undefined },
          before_cover_only: beforeCoverOnly === 'yes',
        };
}

/** Reads the record as a file with it, and names the field of the first problem. */
function recordOf(record: Tree, change: RecordChange): PartnerRecord {
  try {
    return parsePartners(JSON.stringify([record]), change.partnerId)[0] as PartnerRecord;
  } catch (error) {
    const { problems } = (error instanceof Refusal ? error.facts : {}) as {
      problems?: { path: string; reason: string }[];
    };
    for (const { path, reason } of problems ?? []) {
      const at = path
        .replace(/^0\./, '')
        .replace(/^policies(?=\.\d)/, 'policy')
        .replaceAll(/\.\d+/g, '');
      const [field] = Object.entries({ ...PATHS, ...DATED }).find(([, own]) => at.startsWith(own)) ?? [
        at === 'policy.policy_id' ? 'policyId' : 'partnerId',
      ];
      throw refuseField(field, String(change[field as RecordField] ?? ''), reason);
    }
    throw error;
  }
}

/** The values in force, with which a form is filled. */
export function valuesOf(partner: PartnerView, policyId: string | undefined, today: string): Record<string, Value> {
  const policy = partner.policies.find(({ policy_id }) => policy_id === policyId);
  const record = { ...partner, policy } as Tree;
  const values = Object.entries(PATHS).flatMap(([field, path]): [string, Value][] => {
    const found = path.split('.').reduce<unknown>((at, name) => (at as Tree | null | undefined)?.[name], record);
    if (found === undefined || found === null) return [];
    return [
      [field, Array.isArray(found) ? found : typeof found === 'boolean' ? (found ? 'yes' : 'no') : String(found)],
    ];
  });
  const terms = termsOn(policy?.cancellation ?? [], today);
  return {
    ...Object.fromEntries(values),
    ...(policy && { rate: cutRateOn(policy.partner_cut_rate, today) }),
    ...(terms && {
      ...{ windowDays: String(terms.window_days), afterWindow: terms.after_window ?? '', cut: terms.cut ?? '' },
      beforeCoverOnly: terms.before_cover_only ? 'yes' : 'no',
    }),
  };
}
