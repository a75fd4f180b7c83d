/**
 * Each field that a format demands, left out alone: it is named before the close, holds the delivery and not the close, and
 * once it is supplied the same document goes out with a valid file.
 */
import { expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { readReadiness } from '../../src/reports/readiness.ts';
import { BELGIAN, FRENCH, GERMAN, SELLER, sellAs } from '../support/e-invoice-partners.ts';
import { brokenProfileRules, judge } from '../support/en16931.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

type Fields = Readonly<Record<string, unknown>>;
/** A place in a file, its term, and the file without it. */
type Gap = readonly [field: string, term: string, without: (full: Fields) => Fields];

const blank =
  (name: string): Gap[2] =>
  (full) => ({ ...full, [name]: '' });
const inside =
  (group: string, name: string, value: unknown = ''): Gap[2] =>
  (full) => ({ ...full, [group]: { ...(full[group] as Fields), [name]: value } });

const OF_EVERY_SELLER: readonly Gap[] = [
  ['issuer.address.country', 'BT-40', inside('address', 'country')],
  ['issuer.tax_id', 'BT-31', blank('tax_id')],
  ['issuer.e_invoice.no_tax', 'BT-151', inside('e_invoice', 'no_tax', null)],
];
const SELLER_ADDRESS: Gap = ['issuer.e_invoice.electronic_address', 'BT-34', inside('e_invoice', 'electronic_address')];
const OF_EVERY_BUYER: readonly Gap[] = [
  ['address.country', 'BT-55', inside('address', 'country')],
  ['tax_id', 'BT-48', blank('tax_id')],
];
const BUYER_ADDRESS: Gap = ['electronic_address', 'BT-49', blank('electronic_address')];

interface Case {
  readonly partner: Fields & { readonly partner_id: string };
  readonly ofSeller: readonly Gap[];
  readonly ofBuyer: readonly Gap[];
}

const CASES: Readonly<Record<string, Case>> = {
  'Factur-X': {
    partner: { ...FRENCH, tax_id: 'FR40303265045' },
    ofSeller: OF_EVERY_SELLER,
    ofBuyer: OF_EVERY_BUYER,
  },
  'Peppol BIS': {
    partner: { ...BELGIAN, tax_id: 'BE0843766574' },
    ofSeller: [...OF_EVERY_SELLER, SELLER_ADDRESS],
    ofBuyer: [
      ...OF_EVERY_BUYER,
      BUYER_ADDRESS,
      ['buyer_reference or purchase_order', 'BT-10', blank('purchase_order')],
    ],
  },
  XRechnung: {
    partner: { ...GERMAN, tax_id: 'DE987654328' },
    ofSeller: [
      ...OF_EVERY_SELLER,
      SELLER_ADDRESS,
      ['issuer.address.city', 'BT-37', inside('address', 'city')],
      ['issuer.address.postal_code', 'BT-38', inside('address', 'postal_code')],
      ['issuer.e_invoice.contact_name', 'BT-41', inside('e_invoice', 'contact_name')],
      ['issuer.phone', 'BT-42', blank('phone')],
      ['issuer.email', 'BT-43', blank('email')],
    ],
    ofBuyer: [
      ...OF_EVERY_BUYER,
      BUYER_ADDRESS,
      ['address.city', 'BT-52', inside('address', 'city')],
      ['address.postal_code', 'BT-53', inside('address', 'postal_code')],
      ['buyer_reference', 'BT-10', blank('buyer_reference')],
    ],
  },
};

/** Everything that any format demands of the seller, under reverse charge. */
function fullIssuer(): Fields {
  const noTax = { category: 'AE', reason: 'Reverse charge', reason_code: 'VATEX-EU-AE' };
  return { ...world.settings.issuer, tax_id: 'DE123456788', e_invoice: { ...SELLER, no_tax: noTax } };
}

const useIssuer = (issuer: Fields): void => {
  world.settings = { ...world.settings, issuer: issuer as unknown as Settings['issuer'] };
};

const email = async () =>
  (
    await world.sql<{ status: string; reason: string | null }>(
      'SELECT status, reason FROM document_emails ORDER BY email_id',
    )
  )[0];

const gaps = async () => {
  const { missing } = await world.database.reading((tx) => readReadiness(tx, world));
  return missing
    .filter(({ needs: text }) => text.includes('for e-invoices'))
    .map(({ id, needs: text }) => `${id}: ${text}`);
};

test.each(Object.entries(CASES))(
  '%s names each field that is missing, and waits for it',
  async (name, tried) => {
    const { partner_id, currency } = tried.partner;
    sellAs(world, undefined);
    const full = fullIssuer();
    // The document is issued while all of it is missing.
    useIssuer(tried.ofSeller.reduce<Fields>((issuer, [, , without]) => without(issuer), full));
    await world.partners([
      partner(tried.ofBuyer.reduce<Fields>((buyer, [, , without]) => without(buyer), tried.partner)),
    ]);
    await world.rows([quote({ partner_id, currency })]);
    await world.close();
    await world.deliver();
    const all = (await email())?.reason;
    for (const [field, term] of [...tried.ofSeller, ...tried.ofBuyer]) {
      // Nobody has said why there is no tax, so that a partner's tax number is not asked for yet.
      if (field !== 'tax_id' && field !== 'issuer.tax_id') expect(all).toContain(`${field} (${term})`);
    }

    const expectToWait = async (field: string, term: string, file: string) => {
      await world.deliver();
      expect(await email()).toEqual({
        status: 'held',
        reason:
          `its e-invoice (${name}) lacks ${field} (${term}) in ${file}. ` +
          `Fill it in${file === 'partners.json' ? ', import partners.json' : ''} and deliver it; ` +
          'errors on the document itself are corrected by a rerun',
      });
    };
    await world.partners([partner(tried.partner)]);
    for (const [field, term, without] of tried.ofSeller) {
      useIssuer(without(full));
      await expectToWait(field, term, 'settings.json');
      expect(await gaps()).toEqual([`${field}: a value, for e-invoices (${term})`]);
    }
    useIssuer(full);
    for (const [field, term, without] of tried.ofBuyer) {
      await world.partners([partner(without(tried.partner))]);
      await expectToWait(field, term, 'partners.json');
      expect(await gaps()).toEqual([
        `${partner_id}: ${field}, for e-invoices (${tried.partner['e_invoice']}, ${term})`,
      ]);
    }
    expect(server.mails).toHaveLength(0);

    await world.partners([partner(tried.partner)]);
    expect(await gaps()).toEqual([]);
    await world.deliver();
    expect(await email()).toMatchObject({ status: 'sent' });
    const [{ xml }] = (await world.sql('SELECT xml FROM document_e_invoices')) as [{ xml: Buffer }];
    expect(judge(xml).failed).toEqual([]);
    if (tried.partner['e_invoice'] !== 'facturx') expect(brokenProfileRules(xml)).toEqual([]);
  },
  120_000,
);

test('a currency of three decimals is told to be issued again, because the format of an issued document is fixed', async () => {
  sellAs(world, SELLER);
  const kuwaiti = { ...FRENCH, currency: 'KWD' };
  await world.partners([partner(kuwaiti)]);
  await world.rows([quote({ partner_id: FRENCH.partner_id, currency: 'KWD' })]);
  await world.close();
  await world.deliver();
  expect(await world.sql('SELECT status, reason FROM document_emails')).toEqual([
    {
      status: 'held',
      reason: expect.stringContaining(
        'cannot be written: EN 16931 has two decimals, and KWD has more. Set e_invoice to none in partners.json, and rerun',
      ) as string,
    },
  ]);
});
