/**
 * Lists what production needs but the installation lacks, by setting, environment variable, template, currency, partner
 * and connected account.
 */

import { readApprovers } from '#approvals/requests.sql';
import { readRecognition } from '#close/months.sql';
import { accountKeyVariable, Environment } from '#config/environment';
import { instructionsFor } from '#config/instructions';
import { LOG_SIGNING_KEY_FILE } from '#config/log-key';
import { missingSettings } from '#config/missing-settings';
import { refusePageOverrides } from '#config/overrides';
import { Settings } from '#config/settings';
import { Tax, taxRuleFor, whyNoTaxRule } from '#config/tax';
import { Transaction } from '#database/transaction';
import { readPresentBuyers } from '#delivery/documents.sql';
import { lacksOfPartner, PresentBuyer } from '#delivery/e-invoice';
import { trySpecimens } from '#delivery/specimen';
import { Refusal } from '#errors/refusals';
import { templatesOf } from '#mail/templates';
import { ActivePartner, readActivePartners, recordedOtherwise } from '#partners/partners.sql';
import { Installation } from '#people/audit-events';
import { changeText } from '#people/field-changes';
import { proposedByFiles } from '#people/settings-in-force';
import { linksOf, ProcessorLinks } from '#processors/links/providers';
import { Remedy, toDo, toRun } from '#remedy';
import { readAccountCursors } from '#splits/accounts.sql';
import { lastDay, Month, monthOf } from '#values';

export type Gap = Readonly<{
  scope: 'settings' | 'environment' | 'template' | 'currency' | 'partner' | 'account';
  /**
   * The name of what is missing: the setting's path, the variable, the file, the currency, the partner or the account.
   */
  id: string;
  needs: string;
  /** The active partners that are affected, because they are invoiced in the currency or use the account. */
  partners?: readonly string[];
  remedies?: readonly Remedy[];
}>;

export type Readiness = Readonly<{
  missing: readonly Gap[];
  /** The amounts for which there is a payment link, by currency. Empty unless a processor makes the links. */
  link_limits: Readonly<Record<string, string>>;
  /** The partners whose policies are insurance, with taxes on premiums, which Reckoner does not calculate. */
  premium_taxes_not_calculated: readonly string[];
}>;

export async function readReadiness(
  tx: Transaction,
  { environment, settings }: { environment: Environment; settings: Settings },
): Promise<Readiness> {
  const partners = await readActivePartners(tx);
  const byCurrency = new Map<string, string[]>();
  for (const { currency, partner_id } of partners) {
    byCurrency.set(currency, [...(byCurrency.get(currency) ?? []), partner_id]);
  }
  const currencies = [...byCurrency].sort(([one], [other]) => (one < other ? -1 : 1));
  const links = linksOf(settings.payment_link, environment);
  return {
    missing: [
      ...settingsGaps(settings, await recordedOtherwise(tx, settings), await readRecognition(tx)),
      ...approvalGaps(settings, environment, await readApprovers(tx, { partnerIds: null, besides: null })),
      ...adoptionGaps({ environment, settings }),
      ...proxyGaps(environment, settings),
      ...environmentGaps(environment, links),
      ...templateGaps(environment, settings),
      ...currencies.flatMap(([currency, ids]) =>
        currencyGaps(settings, links, currency).map(
          (needs): Gap => ({ scope: 'currency', id: currency, needs, partners: ids }),
        ),
      ),
      ...partners.flatMap(partnerGaps),
      ...eInvoiceGaps(settings, await readPresentBuyers(tx, { partnerIds: null })),
      ...(settings.tax === null ? [] : taxGaps(settings.tax, partners, monthOf(environment.now(), settings.time_zone))),
      ...accountGaps(environment, await readAccountCursors(tx, environment.now().toISO())),
    ],
    link_limits:
      links === undefined ? {} : Object.fromEntries(currencies.map(([currency]) => [currency, links.limits(currency)])),
    premium_taxes_not_calculated: partners
      .filter(({ policies }) => policies.some(({ kind }) => kind === 'insurance'))
      .map(({ partner_id }) => partner_id),
  };
}

function settingsGaps(
  settings: Settings,
  recorded: Settings['we_are'] | null,
  { recorded: recognition }: Awaited<ReturnType<typeof readRecognition>>,
): Gap[] {
  const gaps = missingSettings(settings).map(({ path, needs }): Gap => ({ scope: 'settings', id: path, needs }));
  if (recorded !== null) {
    gaps.push({ scope: 'settings', id: 'we_are', needs: `"${recorded}", as this ledger's rows are posted` });
  }
  if (recognition !== null && recognition !== settings.recognition) {
    gaps.push({ scope: 'settings', id: 'recognition', needs: `"${recognition}", as this ledger's months were closed` });
  }
  if (/^http:/.test(settings.public_url)) {
    gaps.push({
      scope: 'settings',
      id: 'public_url',
      needs: 'https: otherwise payment details can be changed in transit',
    });
  }
  for (const field of ['finance_email', 'auditor_email', 'operations_email'] as const) {
    if (settings[field] === '') gaps.push({ scope: 'settings', id: field, needs: 'an address' });
  }
  return gaps;
}

/** A rule applies only while a second person can approve, so an installation with one person needs no rules. */
function approvalGaps({ approvals }: Settings, { name }: Environment, approvers: readonly object[]): Gap[] {
  const isAsked = name === 'production' || Object.keys(approvals).length > 0;
  const open = isAsked ? advisedRules(approvers.length).filter((action) => approvals[action] === undefined) : [];
  const needs = [
    ...(approvers.length === 2 && approvals['user.deactivate'] !== undefined
      ? ['no rule for user.deactivate, or a third approver: with two, the rule prevents the removal of one']
      : []),
    ...(open.length === 0
      ? []
      : [
          `rules for ${open.join(', ')}, such as {"${open[0]}": {}}: ${approvers.length} people can approve; ` +
            'without these rules one person can do this alone',
        ]),
  ];
  return needs.map((each): Gap => ({ scope: 'settings', id: 'approvals', needs: each }));
}

/** What the files state otherwise than the adopted sections has no effect until it is adopted. */
const adoptionGaps = (context: Installation): Gap[] =>
  proposedByFiles(context).map(({ section, changes }) => ({
    ...{ scope: 'settings', id: section },
    needs: `an adoption, because the file is not in force: ${changes.map(changeText).join('; ')}`,
    remedies: [toDo('Put the file in force', 'settings.adopt', { section })],
  }));

/** The server speaks plain HTTP, so a public server must be behind a proxy. */
function proxyGaps({ name }: Environment, { public_url: url, http }: Settings): Gap[] {
  if (name !== 'production' || url === '' || http.trust_proxy.length > 0) return [];
  const needs = "the reverse proxy's address: without it, all callers share one address and its limits";
  return [{ scope: 'settings', id: 'http.trust_proxy', needs }];
}

function environmentGaps({ smtpUrl, logKey }: Environment, links: ProcessorLinks | undefined) {
  const gaps: Gap[] = [];
  if (smtpUrl === undefined) {
    gaps.push({ scope: 'environment', id: 'SMTP_URL', needs: 'a mail server: without one, e-mails stay in outbox/' });
  }
  if (logKey === undefined) {
    const needs = 'a key that signs checkpoints: without one, anyone who can write to the database can make them';
    gaps.push({ scope: 'environment', id: LOG_SIGNING_KEY_FILE, needs });
  }
  const missing = links?.missing;
  if (missing !== undefined) gaps.push({ scope: 'environment', id: missing.variable, needs: missing.what });
  return gaps;
}

function templateGaps(environment: Environment, settings: Settings): Gap[] {
  try {
    refusePageOverrides(environment);
    trySpecimens(templatesOf(environment), settings);
    return [];
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { file, problems, reason } = error.facts as {
      file: string;
      problems?: { reason: string }[];
      reason?: string;
    };
    return [{ scope: 'template', id: file, needs: `a correction: ${problems?.[0]?.reason ?? reason}` }];
  }
}

function currencyGaps(settings: Settings, links: ProcessorLinks | undefined, currency: string) {
  const needs: string[] = [];
  const instructions = instructionsFor(settings, currency);
  if (instructions === undefined) needs.push('payment instructions');
  else if (instructions.wire === undefined) needs.push('wire instructions');
  else if (currency === 'USD' && instructions.ach === undefined) needs.push('ACH instructions');
  const problem = links?.currencyProblem(currency);
  if (problem !== undefined) needs.push(problem);
  return needs;
}

/** Connected accounts that Reckoner reads from the processor, but whose key is missing or was never used. */
function accountGaps({ connectedKeys }: Environment, accounts: Awaited<ReturnType<typeof readAccountCursors>>): Gap[] {
  return accounts
    .filter(({ balance_transactions_from }) => balance_transactions_from === 'processor')
    .flatMap(({ account, partners, read_to }): Gap[] => {
      if (!connectedKeys.has(account)) {
        const needs =
          `a key: ${account} cannot be read. Without one, set the partner's balance_transactions_from to ` +
          'settlement_file';
        return [{ scope: 'environment', id: accountKeyVariable(account), needs, partners }];
      }
      const needs = 'a first reading, which checks the key';
      const remedies = [toRun('Read it', 'processor poll')];
      return read_to === null ? [{ scope: 'account', id: account, needs, partners, remedies }] : [];
    });
}

/** The missing data that EN 16931 and the profile require, listed once for each setting and each partner. */
function eInvoiceGaps(settings: Settings, buyers: readonly PresentBuyer[]): Gap[] {
  const ofSettings = new Map<string, Gap & { readonly partners: string[] }>();
  const ofPartners = buyers.flatMap((buyer) => {
    const { partner_id: id, e_invoice: format } = buyer;
    return lacksOfPartner(settings, buyer).flatMap(({ file, field, term }): Gap[] => {
      if (file === 'partners.json')
        return [{ scope: 'partner', id, needs: `${field}, for e-invoices (${format}, ${term})` }];
      const gap = ofSettings.get(field);
      if (gap !== undefined) gap.partners.push(id);
      else
        ofSettings.set(field, {
          scope: 'settings',
          id: field,
          needs: `a value, for e-invoices (${term})`,
          partners: [id],
        });
      return [];
    });
  });
  return [...ofSettings.values(), ...ofPartners];
}

function partnerGaps(partner: ActivePartner): Gap[] {
  return [
    partner.contact_email === '' ? 'invoicing_contact.email' : undefined,
    partner.address_line1 === '' ? 'address.line1' : undefined,
    partner.address_city === '' ? 'address.city' : undefined,
    partner.address_country === '' ? 'address.country' : undefined,
    partner.policies.length === 0 ? 'an active policy' : undefined,
  ]
    .filter((needs) => needs !== undefined)
    .map((needs) => ({ scope: 'partner', id: partner.partner_id, needs }));
}

/**
 * Lists the tax data that partners lack: policies that no tax rule covers at the end of this month, a tax id that a
 * reverse charge needs, and policies that cannot share an e-invoice.
 */
function taxGaps(tax: Tax, partners: readonly ActivePartner[], month: Month): Gap[] {
  const date = lastDay(month < tax.from ? tax.from : month);
  return partners
    .filter(({ arrangement }) => arrangement === 'invoicing')
    .flatMap(({ partner_id: id, address_country: country, tax_id: taxId, e_invoice: eInvoice, policies }) => {
      const ruled = policies.map((policy) => {
        const sale = { partner: id, policy: policy.id, kind: policy.kind, country, date };
        return { policy: policy.id, rule: taxRuleFor(tax, sale), why: whyNoTaxRule(tax, sale) };
      });
      const missing = ruled
        .filter(({ rule }) => rule === undefined)
        .map(({ policy, why }) => (why === '' ? policy : `${policy} (${why})`));
      const outside = ruled.filter(({ rule }) => rule?.category === 'outside_scope').map(({ policy }) => policy);
      const isMixed = eInvoice !== 'none' && outside.length > 0 && outside.length + missing.length < ruled.length;
      const isReversed = ruled.some(({ rule }) => rule?.category === 'reverse_charge');
      return [
        ...(missing.length > 0 ? [`a tax rule on ${date} for policy ${missing.join(', ')}`] : []),
        ...(isReversed && taxId === '' ? ['tax_id: a reverse charge names it'] : []),
        ...(isMixed ? [mixedNeeds(outside)] : []),
      ].map((needs): Gap => ({ scope: 'partner', id, needs }));
    });
}

/**
 * The remedy for a partner whose policies are partly outside the scope of tax. An e-invoice for both kinds of policies
 * is never written, so a document with both kinds waits.
 */
const mixedNeeds = (outside: readonly string[]) =>
  `other tax rules, or no e-invoice: policy ${outside.join(', ')} is outside the scope of tax, and the others are not; ` +
  'EN 16931 does not allow both in one document (BR-O-11)';

/**
 * The rules that production should have if two people can approve. The rules cover actions that send money to others,
 * or decide who may request such actions. The rules also cover actions that set where e-mails and money go, or by which
 * one administrator could create or remove the second person.
 */
export const ADVISED_RULES: readonly string[] = [
  ...['partner.import', 'client.create', 'credit.refund', 'invoice.write_off', 'settings.adopt'],
  ...['user.invite', 'user.link', 'user.role', 'user.deactivate'],
];

/**
 * If there are only two approvers, `user.deactivate` needs no rule, because an approver who has left could not be
 * removed with a rule.
 */
const advisedRules = (approvers: number): readonly string[] =>
  approvers < 2 ? [] : ADVISED_RULES.filter((action) => action !== 'user.deactivate' || approvers > 2);
