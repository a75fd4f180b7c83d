import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DocumentSnapshot } from '../../src/documents/snapshot.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { type DocumentEmailFacts, renderDocumentEmail } from '../../src/mail/document-text.ts';
import { loadTemplates } from '../../src/mail/templates.ts';
import { oneLine } from '../../src/mail/text.ts';
import {
  ach,
  adjustment,
  creditNote,
  instructions,
  internationalWire,
  snapshot,
  statement,
  zeroInvoice,
} from '../support/snapshots.ts';

const SHIPPED = join(import.meta.dirname, '..', '..', 'templates', 'email');
const shipped = loadTemplates([SHIPPED]);

const facts: DocumentEmailFacts = {
  contactName: 'Accounts Payable',
  attachments: [
    { filename: 'INV-2026-000042.pdf', note: 'the invoice' },
    { filename: 'INV-2026-000042-rows.csv', note: 'the 1619 ledger rows behind it' },
  ],
  rowsOmitted: false,
};

const email = (document: DocumentSnapshot, more: Partial<DocumentEmailFacts> = {}) =>
  renderDocumentEmail(document, { ...facts, ...more }, shipped);

/** What a person reads of an HTML e-mail, one piece of text after another. */
const words = (html: string): string =>
  html
    .replace(/<head>[\s\S]*<\/head>/, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

describe('an e-mail with an invoice', () => {
  const { subject, text, html } = email(snapshot());

  it('says what is due, and when, in its subject', () => {
    expect(subject).toBe(
      'Invoice INV-2026-000042 from Fairweather Protection, Inc.: USD 19,907.85 due December 1, 2026',
    );
  });

  it('says what is due, when, and for what in the first two lines', () => {
    expect(text).toMatch(
      /^USD 19,907.85\nis due by December 1, 2026\nInvoice INV-2026-000042 for October 2026, from Fairweather/,
    );
    expect(words(html)).toMatch(
      /^USD 19,907.85 is due by December 1, 2026 Invoice INV-2026-000042 for October 2026, from Fairweather Protection, Inc. to Harbour Lights Ticketing Hello Accounts Payable,/,
    );
  });

  it('has the payment link as a button and as text', () => {
    const link = 'https://billing.fairweather.example/pay/Zk3vQ9mXb27LrTn0cYw5HdPe8sUaJf41';
    expect(text.split('\n')).toContain(link);
    expect(html.split(`href="${link}"`)).toHaveLength(3);
    expect(words(html)).toContain('View and pay');
    expect(words(html)).toContain(`Or open this address: ${link}`);
  });

  it('has the payment reference in full', () => {
    expect(text).toContain('\n\nPayment reference\nINV-2026-000042\n');
    expect(words(html)).toContain('Payment reference INV-2026-000042');
  });

  it('has the full instructions as text, each number labelled with what it is for', () => {
    expect(text).toContain(
      'Routing number (ACH only): 011000015\nAccount number: 4400123456789\nAccount type: checking\n',
    );
    expect(text).toContain(
      'Routing number (wire only): 011000028\nAccount number: 4400123456789\nBIC (SWIFT code): FHNBUS33\n',
    );
    expect(text).toContain('Bank: First Harbor National Bank, 1 Federal Street, Boston, MA 02110, US');
  });

  it('points to the instructions in the PDF', () => {
    expect(words(html)).toContain('To pay by ACH or wire transfer, use the instructions in the attached PDF');
  });

  it('names what is attached', () => {
    expect(text).toContain(
      '- INV-2026-000042.pdf\n  the invoice\n- INV-2026-000042-rows.csv\n  the 1619 ledger rows behind it\n',
    );
    expect(words(html)).toContain('INV-2026-000042.pdf the invoice');
  });

  it('shows how the amount comes about', () => {
    expect(text).toContain('Sales: USD 27,773.50\nLess your share: USD 7,865.65\n');
    const credited = email(snapshot({ credit_applied: '907.85' }));
    expect(credited.text).toContain(
      'Invoice total: USD 19,907.85\nCredit applied: -USD 907.85\nAmount due: USD 19,000.00\n',
    );
    expect(words(credited.html)).toContain('Credit applied -USD 907.85 Amount due USD 19,000.00');
  });

  it('says nothing of a sandbox or of changed bank details', () => {
    expect(subject + text + words(html)).not.toMatch(/sandbox|changed/i);
  });

  it('loads nothing from elsewhere and says its language', () => {
    expect(html).toContain('<html lang="en">');
    expect(html).not.toMatch(/<(img|link|script|iframe|object|video)\b|@import|url\(/i);
  });

  it('repeats the style sheet in each element, because many mail programs read nothing else', () => {
    expect(html).toContain('<p class="subtitle" style="margin:4px 0 0;font-size:18px">');
    expect(html).toMatch(/<table class="rows" style="width:100%;margin:24px 0 0;[^"]*">/);
  });

  it('leaves no blank where a field is empty', () => {
    for (const document of [snapshot(), creditNote(), adjustment(), statement(), zeroInvoice()]) {
      const bare = email(
        {
          ...document,
          issuer: { ...document.issuer, email: '', phone: '', tax_id: '', address: { ...ach.bank_address, line1: '' } },
        },
        { contactName: '', attachments: [] },
      );
      expect(bare.text).toContain('\nHello,\n');
      expect(bare.text).not.toMatch(/: *$|\n\n\n|undefined|null|\{\{/m);
      expect(bare.html).not.toMatch(/<(div|p|td|th|li)[^>]*><\/|undefined|null|\{\{/);
    }
  });
});

describe('an e-mail says how else to pay', () => {
  it('by an international wire with everything that one can need', () => {
    const { text, html } = email(snapshot({ currency: 'EUR', instructions: { wire: internationalWire } }));
    expect(text).toContain('PAY BY WIRE TRANSFER (IN EUR)\n');
    expect(text).toContain('IBAN: DE89370400440532013000\nBIC (SWIFT code): COBADEFFXXX\n');
    expect(text.replace(/\n/g, ' ')).toContain(
      "Intermediary bank: Correspondent Bank of New York, 225 Liberty Street, New York, NY 10281, US Intermediary's BIC: IRVTUS3NXXX ",
    );
    expect(text).not.toContain('BY ACH');
    expect(words(html)).toContain('To pay by wire transfer, use the instructions in the attached PDF');
  });

  it('and without a link only by bank', () => {
    const { text, html } = email(snapshot({ payment_link: null }));
    expect(text).not.toContain('View and pay');
    expect(html).not.toContain('View and pay');
    expect(text).toContain('PAY BY ACH TRANSFER');
  });

  it('and where the rows are too many to attach, where they are', () => {
    const linked = email(snapshot(), { rowsOmitted: true });
    expect(linked.text).toMatch(/too long to attach\.\sThe\spayment\spage\shttps:\S+\shas\sit\sas\sa\sCSV\sfile\./);
    expect(words(linked.html)).toContain('too long to attach. The payment page has it as a CSV file.');
    const unlinked = email(statement(), { rowsOmitted: true });
    expect(unlinked.text.replace(/\n/g, ' ')).toContain('Reply to this e-mail and we will send you the CSV file.');
  });

  it('and warns when the bank details have changed', () => {
    const { text, html } = email(snapshot({ instructions_changed: true }));
    expect(text).toContain('\n*** Our bank details have changed since your last invoice.');
    expect(words(html)).toContain('Our bank details have changed since your last invoice.');
    for (const version of [text.replace(/\n/g, ' '), words(html)]) {
      expect(version).toContain('calling us on a phone number that you already know');
    }
  });
});

it('an e-mail that is sent again after the bank details changed names none and leads to the payment page', () => {
  const { text, html } = email(snapshot(), { instructionsOutdated: true });
  for (const version of [text.replace(/\n/g, ' '), words(html)]) {
    expect(version).toMatch(/our bank details have changed since this invoice was issued/i);
    expect(version).toContain('The bank details in the attached PDF are out of date.');
    expect(version).toContain('calling us on a phone number that you already know');
    expect(version).not.toMatch(/use the instructions in the attached PDF|PAY BY|4400123456789/);
  }
  expect(text).toContain(snapshot().payment_link);
});

describe('an e-mail with nothing to pay', () => {
  const unpayable = /PAYMENT REFERENCE|PAY |https?:|routing|IBAN/;

  it('says so for a month that came to zero', () => {
    const { subject, text, html } = email(zeroInvoice());
    expect(subject).toBe('Invoice INV-2026-000042 from Fairweather Protection, Inc.: nothing due');
    expect(text).toMatch(/^Nothing is due\nInvoice INV-2026-000042 for October 2026/);
    expect(text).toContain('\nNo payment is needed.\n');
    expect(text).not.toMatch(unpayable);
    expect(words(html)).toMatch(/^Nothing is due Invoice INV-2026-000042/);
  });

  it('says that credit covers an invoice', () => {
    const { text, html } = email(zeroInvoice({ invoiceAmount: '5.00', credit_applied: '5.00', amount_due: '0.00' }));
    expect(text).toContain('Your credit covers this invoice in full. No payment is needed.');
    expect(words(html)).toContain('Your credit covers this invoice in full. No payment is needed.');
  });

  it('says what a credit note owes and that it will be applied', () => {
    const { subject, text, html } = email(creditNote());
    expect(subject).toBe('Credit note CN-2026-000003 from Fairweather Protection, Inc.: USD 567.00 owed to you');
    expect(text).toMatch(/^USD 567.00\nis owed to you\nCredit note CN-2026-000003 for October 2026/);
    expect(text.replace(/\n/g, ' ')).toContain('Otherwise we will apply the credit to your invoices in USD.');
    expect(text).not.toMatch(unpayable);
    expect(words(html)).toMatch(/^USD 567.00 is owed to you Credit note CN-2026-000003/);
  });

  it('shows no sales on a credit that stands for no ledger rows', () => {
    const { text, html } = email(
      creditNote({ lines: [], spotPrice: '0.00', partnerCut: '0.00', invoiceAmount: '50.00' }),
    );
    expect(text + words(html)).not.toMatch(/sales|your share/i);
    expect(text).toContain('Owed to you: USD 50.00');
  });

  it('says what an adjustment credits, why, and how the credit is used', () => {
    const { subject, text, html } = email(adjustment());
    expect(subject).toBe(
      'Credit note CN-2026-000004 from Fairweather Protection, Inc.: USD 1,250.00 credited against invoice INV-2026-000042',
    );
    expect(text).toMatch(
      /^USD 1,250.00\nis credited to you\nCredit note CN-2026-000004 against invoice INV-2026-000042, from Fairweather/,
    );
    expect(words(html)).toMatch(/^USD 1,250\.00 is credited to you Credit note CN-2026-000004 against invoice/);
    for (const version of [text.replace(/\n/g, ' '), words(html)]) {
      expect(version).toContain('Reason: Enrollments of the cancelled harbour festival, as agreed on 12 November');
      expect(version).toContain('USD 1,250.00 is taken off that invoice, which leaves USD 18,657.85 to pay.');
      expect(version).not.toMatch(unpayable);
    }
  });

  it('says on a statement that the processor routes the money', () => {
    const { subject, text, html } = email(statement());
    expect(subject).toBe(
      'Activity statement ST-2026-000007 from Fairweather Protection, Inc. for October 2026: nothing due',
    );
    expect(text).toMatch(/^Nothing is due\nActivity statement ST-2026-000007 for October 2026/);
    expect(text.replace(/\n/g, ' ')).toContain(
      'Our share reaches us through the payment processor. No payment is needed.',
    );
    expect(text).toContain('Our share, through the payment processor: USD 19,907.85');
    expect(text).not.toMatch(unpayable);
    expect(words(html)).toMatch(/^Nothing is due Activity statement ST-2026-000007/);
  });

  it('never offers a payment, even where a snapshot carries a link or instructions by mistake', () => {
    const { text, html } = email(statement({ payment_link: 'https://pay.example/x', instructions }));
    expect(text).not.toMatch(unpayable);
    expect(html).not.toContain('https://pay.example');
  });
});

describe('an e-mail with a replacement', () => {
  it('says which void document it replaces', () => {
    for (const [document, says] of [
      [snapshot, 'It replaces invoice INV-2026-000040, which is void. Please do not pay the void invoice.'],
      [creditNote, 'It replaces INV-2026-000040, which is void.'],
      [statement, 'It replaces statement INV-2026-000040, which is void.'],
    ] as const) {
      const { text, html } = email(document({ replaces: 'INV-2026-000040' }));
      expect(text.replace(/\n/g, ' ')).toContain(says);
      expect(words(html)).toContain(says);
      expect(email(document()).text).not.toContain('replaces');
    }
  });
});

it('an e-mail with an invoice for missing shares says what it is for', () => {
  const { text, html } = email(snapshot({ purpose: 'missing_shares' }));
  for (const version of [text.replace(/\n/g, ' '), words(html)]) {
    expect(version).toContain('our share of payments for October 2026 that the payment processor did not route to us');
    expect(version).not.toMatch(/protection products|Sales|Less your share/);
  }
});

it('amounts in an e-mail are written in English, and dates in the order of the partner’s country', () => {
  const { partner } = snapshot();
  const { subject, text, html } = email(
    snapshot({ currency: 'EUR', partner: { ...partner, address: { ...partner.address, country: 'DE' } } }),
  );
  expect(subject).toContain('EUR 19,907.85 due 1 December 2026');
  expect(text).toMatch(/^EUR 19,907\.85\nis due by 1 December 2026\n/);
  expect(text).toContain('Enrollments: 1,592\nSales: EUR 27,773.50\n');
  expect(words(html)).toContain('EUR 19,907.85 is due by 1 December 2026');
});

describe('a sandbox e-mail', () => {
  it('is marked in its subject and in both bodies, whatever the document', () => {
    for (const document of [snapshot, creditNote, statement, zeroInvoice]) {
      const { subject, text, html } = email(document({ sandbox: true }));
      expect(subject).toMatch(/^\[SANDBOX\] (Invoice|Credit note|Activity statement) /);
      expect(text.split('\n').slice(0, 7).join('\n')).toContain('*** SANDBOX. This is a test.');
      expect(words(html)).toContain('SANDBOX. This is a test.');
    }
  });
});

describe('names in an e-mail', () => {
  const bold = { ...snapshot().partner, name: '<b>Bold</b> & Sons' };

  it('are escaped in HTML and nowhere else', () => {
    const { text, html } = email(snapshot({ partner: bold }), { contactName: `"Ada" <script>alert('x')</script>` });
    expect(text).toMatch(/to\s<b>Bold<\/b> & Sons\n/);
    expect(text).toContain(`Hello "Ada" <script>alert('x')</script>,`);
    expect(html).toContain('to &lt;b&gt;Bold&lt;/b&gt; &amp; Sons');
    expect(html).not.toMatch(/<b>|<script/);
  });

  it('cannot leave an attribute', () => {
    const { html } = email(snapshot({ payment_link: 'https://x.example/"onmouseover="alert(1)' }));
    expect(html).not.toContain('"onmouseover');
  });

  it('are escaped in a subject only where it stands in HTML', () => {
    const issuer = { ...snapshot().issuer, legal_name: 'Fair & Square <Ltd>' };
    const { subject, html } = email(snapshot({ issuer }));
    expect(subject).toContain('from Fair & Square <Ltd>:');
    expect(html).toContain('<title>Invoice INV-2026-000042 from Fair &amp; Square &lt;Ltd&gt;:');
  });

  it('cannot break a subject or begin a line of their own', () => {
    const name = 'Fair\r\nBcc: everyone@evil.example\u2028\u0000\u0085Ltd';
    const { subject, text } = email(
      snapshot({ issuer: { ...snapshot().issuer, legal_name: name }, partner: { ...bold, name } }),
    );
    expect(subject).toBe(
      'Invoice INV-2026-000042 from Fair Bcc: everyone@evil.example Ltd: USD 19,907.85 due December 1, 2026',
    );
    expect(text).not.toMatch(/^Bcc|\r|\u2028/m);
    expect(oneLine('  a\t\n b\ud800\u202eevil \u200fx\u061c')).toBe('a b\ufffd evil x');
  });

  it('may be in any script', () => {
    const { text, html } = email(snapshot({ partner: { ...bold, name: '東京チケット株式会社' } }));
    expect(text).toMatch(/to\s東京チケット株式会社/);
    expect(html).toContain('to 東京チケット株式会社');
  });
});

describe('templates', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'templates-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const withOverrides = (files: Record<string, string>) => {
    rmSync(folder, { recursive: true });
    folder = mkdtempSync(join(tmpdir(), 'templates-'));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    return loadTemplates([folder, SHIPPED]);
  };

  it('of the house win, file by file, and the rest stays as shipped', () => {
    const templates = withOverrides({
      'invoice.subject.hbs': 'Rechnung {{number}}:\n{{amount}}\n',
      '_closing.html.hbs': '<p>Gruß, {{issuer.name}}</p>\n',
      'credit_note.txt.hbs': 'Gutschrift {{number}}',
    });
    const { subject, text, html } = renderDocumentEmail(snapshot(), facts, templates);
    expect(subject).toBe('Rechnung INV-2026-000042: USD 19,907.85');
    expect(text).toMatch(/^USD 19,907\.85\nis due by[\s\S]+Gruß, Fairweather Protection, Inc\.\n/);
    expect(html).toMatch(/<p[^>]*>Gruß, Fairweather Protection, Inc\.<\/p>/);
    expect(renderDocumentEmail(creditNote(), facts, templates)).toMatchObject({
      subject: expect.stringContaining('Credit note'),
      text: 'Gutschrift CN-2026-000003',
    });
  });

  it('of the house cannot take the sandbox mark from a subject', () => {
    const templates = withOverrides({ 'invoice.subject.hbs': 'Pay now' });
    expect(renderDocumentEmail(snapshot({ sandbox: true }), facts, templates).subject).toBe('[SANDBOX] Pay now');
  });

  it('are read once: what changes on disk later is not used half-way through a run', () => {
    const templates = withOverrides({ 'invoice.txt.hbs': 'first' });
    writeFileSync(join(folder, 'invoice.txt.hbs'), 'second');
    expect(renderDocumentEmail(snapshot(), facts, templates).text).toBe('first');
  });

  it('that nobody overrides need no folder', () => {
    expect(renderDocumentEmail(snapshot(), facts, loadTemplates([join(folder, 'nowhere'), SHIPPED]))).toEqual(
      email(snapshot()),
    );
  });

  const refusalOf = (action: () => unknown): Refusal => {
    try {
      action();
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
    throw new Error('nothing was refused');
  };

  it('that are missing are named', () => {
    const refusal = refusalOf(() => loadTemplates([folder]));
    expect(refusal.code).toBe('file_unreadable');
    expect(refusal.message).toMatch(/^Cannot read \w+\.subject\.hbs: /);
  });

  it('that are malformed, in themselves or in a part, hold their own e-mails and no others', () => {
    const templates = withOverrides({
      'statement.html.hbs': '<p>\n{{#if due}}',
      '_bank_details.html.hbs': 'Pay by {{#each}',
    });
    expect(refusalOf(() => renderDocumentEmail(statement(), facts, templates)).message).toMatch(/statement\.html\.hbs/);
    const refusal = refusalOf(() => renderDocumentEmail(snapshot(), facts, templates));
    expect(refusal.code).toBe('settings_invalid');
    expect(refusal.message).toContain('_bank_details.html.hbs');
    expect(renderDocumentEmail(creditNote(), facts, templates)).toEqual(email(creditNote()));
  });

  it('that cannot be read, or include themselves, are refused by name', () => {
    const unreadable = withOverrides({});
    mkdirSync(join(folder, 'invoice.txt.hbs'));
    expect(unreadable).toBeDefined();
    const refusal = refusalOf(() => renderDocumentEmail(snapshot(), facts, loadTemplates([folder, SHIPPED])));
    expect(refusal.code).toBe('file_unreadable');
    expect(refusal.message).toContain('invoice.txt.hbs');
    const endless = withOverrides({ '_opening.html.hbs': '{{> _opening}}' });
    expect(refusalOf(() => renderDocumentEmail(snapshot(), facts, endless)).code).toBe('settings_invalid');
  });

  it('can reach nothing but the fields of an e-mail', () => {
    for (const reach of ['{{lookup this "constructor"}}', '{{log number}}', '{{#with issuer}}{{name}}{{/with}}']) {
      const templates = withOverrides({ 'invoice.txt.hbs': reach });
      expect(refusalOf(() => renderDocumentEmail(snapshot(), facts, templates)).code).toBe('settings_invalid');
    }
    // What every object has is no field: it comes to nothing.
    const templates = withOverrides({ 'invoice.txt.hbs': '[{{__proto__}}{{constructor}}{{toString}}]' });
    expect(renderDocumentEmail(snapshot(), facts, templates).text).toBe('[]');
  });

  it('that misspell a field are refused, and leave no hole where an amount should be', () => {
    const templates = withOverrides({ 'invoice.txt.hbs': 'Please pay {{amuont}}.' });
    const refusal = refusalOf(() => renderDocumentEmail(snapshot(), facts, templates));
    expect(refusal.code).toBe('settings_invalid');
    expect(refusal.message).toMatch(/invoice\.txt\.hbs[\s\S]+"amuont" not defined/);
  });
});
