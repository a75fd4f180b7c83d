/** `reckoner partner import|list|show`. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Environment } from '../../config/environment.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { type PartnerRecord, parsePartners } from '../../partners/file.ts';
import { importPartners } from '../../partners/import.ts';
import { type PartnerView, readPartners } from '../../partners/queries.ts';
import { recordEvent } from '../../people/audit-events.ts';
import { acting, type CommandContext, type Definition, type Done, reading } from '../define.ts';
import { readInput } from '../input.ts';
import { type Output, printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';
import type { Sheet } from '../sheet.ts';

export const define: Definition = (partner, act) => {
  partner
    .command('import')
    .argument('<file>', "a JSON array of partners; '-' is stdin")
    .description('Create and update partners')
    .action(act(partnerImport));
  partner
    .command('list')
    .description('List all partners')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(partnerList)));
  partner
    .command('show <id>')
    .description('Show a partner with its policies')
    .action(act(reading(partnerShow)));
};

function partnerImport(output: Output, file: string): Done {
  const text = readInput(file).toString('utf8');
  const partners = parsePartners(text, file);
  return acting(async ({ environment, database, actor }) => {
    const report = await database.transaction(async (tx) => {
      const now = environment.now();
      const imported = await importPartners(tx, partners, now);
      if (imported.created + imported.updated > 0) {
        // Partners are updated in place and the file is not stored: its hash identifies it.
        const details = { file, sha256: createHash('sha256').update(text).digest('hex'), ...imported };
        await recordEvent(tx, actor, { action: 'partner.import', subject: basename(file), details, now: now.toISO() });
      }
      return imported;
    });
    output.print(
      report,
      () => `Partners: ${report.created} new, ${report.updated} updated, ${report.unchanged} unchanged.`,
    );
    for (const remark of await unprintableRemarks(environment, partners)) output.note(remark);
    return EXIT.done;
  })(output);
}

/** The fonts cover Latin, Greek, Cyrillic and Vietnamese. A warning now is better than an invoice that is held. */
async function unprintableRemarks(environment: Environment, partners: readonly PartnerRecord[]): Promise<string[]> {
  const { addressText, fontFolder, installedFonts, unprintableFields } = await import('../../documents/printable.ts');
  const fonts = installedFonts(environment);
  return partners.flatMap(({ partner_id: partnerId, name, address, legal_note: note }) => {
    const missing = unprintableFields([['', [name, addressText(address), note].join(' ')]], fonts);
    return missing.map(
      ({ characters }) =>
        `Partner ${partnerId}: no font has ${characters.join('')}, so its documents will be held. ` +
        `Put a font that has these characters into ${fontFolder(environment)}, or write them in other letters.`,
    );
  });
}

async function partnerList({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const partners = await database.reading((tx) => readPartners(tx));
  await present(
    output,
    options,
    partners.map(asFile),
    () => sheetOf(partners),
    () => (partners.length === 0 ? "No partners yet. Add them with 'reckoner partner import FILE'." : listed(partners)),
  );
}

const sheetOf = (partners: readonly PartnerView[]): Sheet => ({
  name: 'Partners',
  columns: {
    partner_id: 'text',
    name: 'text',
    ...ADDRESS,
    contact: 'text',
    email: 'text',
    cc: 'text',
    currency: 'text',
    time_zone: 'text',
    payment_terms_days: 'count',
    tax_id: 'text',
    purchase_order: 'text',
    arrangement: 'text',
    policies: 'count',
    active: 'text',
  },
  rows: partners.map(({ invoicing_contact: contact, address, ...partner }) => ({
    ...partner,
    ...address,
    contact: contact.name,
    email: contact.email,
    cc: contact.cc.join(' '),
    policies: partner.policies.filter((policy) => policy.active).length,
    active: partner.active ? 'yes' : 'no',
  })),
});

const ADDRESS = {
  line1: 'text',
  line2: 'text',
  city: 'text',
  region: 'text',
  postal_code: 'text',
  country: 'text',
} as const;

function listed(partners: readonly PartnerView[]): string {
  return table(
    ['~partner', '~name', 'currency', 'time zone', 'policies', ''],
    partners.map((partner) => [
      partner.partner_id,
      partner.name,
      partner.currency,
      partner.time_zone,
      partner.policies.filter((policy) => policy.active).length,
      partner.active ? '' : 'inactive',
    ]),
  );
}

async function partnerShow({ database, output }: CommandContext, partnerId: string): Promise<void> {
  const [partner] = await database.reading((tx) => readPartners(tx, partnerId));
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  output.print(asFile(partner), () => describe(partner));
}

/** The shape of partners.json, without fields that do not apply. */
function asFile(partner: PartnerView): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries({
      ...partner,
      policies: partner.policies.map(({ price, ...policy }) => (price === null ? policy : { ...policy, price })),
    }).filter(([, value]) => value !== null),
  );
}

function describe(partner: PartnerView): string {
  const { address, invoicing_contact: contact } = partner;
  const place = [
    address.line1,
    address.line2,
    `${address.postal_code} ${address.city}`.trim(),
    address.region,
    address.country,
  ];
  const facts: [string, string][] = [
    ['name', partner.name],
    ['address', place.filter((part) => part !== '').join(', ')],
    ['contact', [contact.name, contact.email, ...contact.cc].filter((part) => part !== '').join(', ') || 'none'],
    ['currency', partner.currency],
    ['time zone', partner.time_zone],
    ['terms', partner.payment_terms_days === null ? "the issuer's" : `${partner.payment_terms_days} days`],
    ['arrangement', partner.arrangement],
    ['active', partner.active ? 'yes' : 'no'],
  ];
  const policies = partner.policies.map((policy) => [
    policy.policy_id,
    policy.name,
    policy.kind,
    policy.partner_cut_rate,
    policy.active ? '' : 'inactive',
  ]);
  return [
    `Partner ${partner.partner_id}`,
    ...facts.map(([label, value]) => `  ${label.padEnd(12)} ${printable(value)}`),
    '',
    table(['~policy', '~name', 'kind', '>cut rate', ''], policies),
  ].join('\n');
}
