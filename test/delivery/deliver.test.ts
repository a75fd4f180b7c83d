/** What a partner gets for a closed month: one e-mail a document, with its link, its PDF and the rows behind it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { type ParsedMail, simpleParser } from 'mailparser';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { DocumentJson } from '../../src/documents/document.ts';
import { Amount } from '../../src/money.ts';
import { startOver } from '../close/start-over.ts';
import { adopt } from '../support/adopting.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { MailServer, ReceivedMail } from '../support/mail-server.ts';
import { openMailWorld } from '../support/mail-world.ts';
import { partner, quote, requote, reversal, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
openMailWorld((opened) => {
  ({ world, server } = opened);
});

/** June's invoice of p-1; July's invoice of p-2, statement of p-3 and credit note of p-1. */
async function closeTwoMonths(): Promise<void> {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'platform', split: 'real_time' };
  const contact = {
    name: 'Zoë Ünal',
    email: 'zoe@partner.example',
    cc: ['boss@partner.example', 'Zoe@partner.example'],
  };
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', name: 'Kino & Söhne', invoicing_contact: contact }),
    partner({ partner_id: 'p-3', arrangement: 'connected_account', ...connected }),
  ]);
  const sold = quote({ accepted_at: '2026-06-10T12:00:00Z' });
  const other = quote({ partner_id: 'p-2' });
  await world.rows([
    sold,
    reversal(sold, { accepted_at: '2026-07-10T12:00:00Z' }),
    other,
    requote(other),
    quote({ partner_id: 'p-2', policy_id: 'parking' }),
    quote({ partner_id: 'p-3' }),
  ]);
  await world.close();
}

const documentOf = async (number: string): Promise<DocumentJson> => {
  const found = (await world.documents()).find((document) => document.number === number);
  if (found === undefined) throw new Error(`there is no ${number}`);
  return found;
};

const mailOf = (number: string): ReceivedMail => {
  const found = server.mails.filter(({ parsed }) => parsed.subject?.includes(number));
  expect(found).toHaveLength(1);
  return found[0] as ReceivedMail;
};

function attachment(mail: ParsedMail, filename: string): Buffer {
  const found = mail.attachments.find((each) => each.filename === filename);
  if (found === undefined) throw new Error(`${filename} is not attached`);
  return found.content;
}

describe('by a mail server', () => {
  beforeAll(async () => {
    await startOver(world);
    await closeTwoMonths();
    const deliveries = await world.deliver();
    expect(deliveries.map(({ number, status }) => `${number} ${status}`).sort()).toEqual([
      'CN-2026-000001 sent',
      'INV-2026-000001 sent',
      'INV-2026-000002 sent',
      'ST-2026-000001 sent',
    ]);
  });

  test('every document is sent once', async () => {
    expect(server.mails).toHaveLength(4);
    expect((await world.documents()).map(({ email }) => email?.status)).toEqual(['sent', 'sent', 'sent', 'sent']);
    expect(await world.months('2026-07')).toMatchObject([
      { deliveries: { sent: 3, pending: 0, held: 0, failed: 0, uncertain: 0 } },
    ]);
  });

  test('it goes to the contact and the copies, each once, and says so', async () => {
    const { from, to, parsed } = mailOf('INV-2026-000002');
    expect(from).toBe('billing@protection.example');
    expect(to).toEqual(['zoe@partner.example', 'boss@partner.example']);
    expect(parsed.to).toMatchObject({ value: [{ name: 'Zoë Ünal', address: 'zoe@partner.example' }] });
    expect(parsed.cc).toMatchObject({ value: [{ address: 'boss@partner.example' }] });
    expect(parsed.from).toMatchObject({
      value: [{ name: 'Sandbox Protection Services, Inc.', address: 'billing@protection.example' }],
    });
    expect(parsed.replyTo).toMatchObject({ value: [{ address: 'finance@protection.example' }] });
    expect(parsed.subject).toBe(
      '[SANDBOX] Invoice INV-2026-000002 from Sandbox Protection Services, Inc.: USD 17.50 due August 31, 2026',
    );
    expect((await documentOf('INV-2026-000002')).email).toEqual({
      status: 'sent',
      to: ['zoe@partner.example', 'boss@partner.example'],
      message_id: parsed.messageId,
      sent_at: '2026-08-01T10:00:00Z',
    });
  });

  test('Message-IDs name the document and are all different', async () => {
    const ids = server.mails.map(({ parsed }) => parsed.messageId ?? '');
    expect(new Set(ids).size).toBe(4);
    expect(mailOf('ST-2026-000001').parsed.messageId).toMatch(
      /^<ST-2026-000001\.1\.[0-9a-f]{12}@protection\.example>$/,
    );
  });

  test('the PDF that is attached is the one that is kept, to the byte', async () => {
    for (const { number, pdf } of await world.documents()) {
      const [kept] = await world.sql<{ pdf: Buffer; sha256: string }>(
        `SELECT pdf, w.sha256 FROM document_pdfs w JOIN documents USING (document_id) WHERE number = $1`,
        [number],
      );
      const attached = attachment(mailOf(number).parsed, `${number}.pdf`);
      expect(attached.equals(kept?.pdf ?? Buffer.alloc(0))).toBe(true);
      expect(attached.subarray(0, 5).toString()).toBe('%PDF-');
      expect(pdf).toEqual({ sha256: kept?.sha256, bytes: attached.length });
    }
  });

  test('the rows that are attached add up to the document, a credit note’s with the signs of the ledger', async () => {
    for (const document of await world.documents()) {
      const marked = attachment(mailOf(document.number).parsed, `${document.number}-rows.csv`).toString();
      // Excel knows UTF-8 by this mark.
      expect(marked[0]).toBe('\ufeff');
      const csv = marked.slice(1);
      expect(csv.split('\r\n')[0]).toBe(
        'kind,partner_id,quote_id,requote_id,reversal_id,enrollment_id,policy_id,currency,accepted_at,' +
          'spotPrice,partnerCut,invoiceAmount,order_reference,cover_from,cover_to,entry_id,posted_month,recorded_at,' +
          'document,allowed_by',
      );
      const rows = parse(csv, { columns: true }) as Record<string, string>[];
      expect(rows).toHaveLength(document.lines.reduce((total, { count }) => total + count, 0));
      for (const field of ['spotPrice', 'partnerCut', 'invoiceAmount'] as const) {
        const sum = rows.reduce((total, row) => total.plus(Amount.of(row[field] ?? '', 'USD')), Amount.zero('USD'));
        expect((document.document === 'credit_note' ? sum.negated() : sum).toString()).toBe(document[field]);
      }
      for (const row of rows) {
        expect(row).toMatchObject({
          partner_id: document.partner_id,
          posted_month: document.month,
          document: document.number,
          allowed_by: row['kind'] === 'reversal' ? expect.stringMatching(/^(proportion|remainder)$/) : '',
        });
      }
    }
  });

  test('only payable documents have a link, and no link can be guessed', async () => {
    const links = Object.fromEntries(
      (await world.documents()).map(({ number, payment_link }) => [number, payment_link]),
    );
    const page = /^http:\/\/127\.0\.0\.1:8080\/pay\/[A-Za-z0-9_-]{32}$/;
    expect(links).toEqual({
      'CN-2026-000001': null,
      'INV-2026-000001': expect.stringMatching(page),
      'INV-2026-000002': expect.stringMatching(page),
      'ST-2026-000001': null,
    });
    expect(links['INV-2026-000001']).not.toBe(links['INV-2026-000002']);
    expect(mailOf('INV-2026-000002').parsed.text).toContain(String(links['INV-2026-000002']));
    for (const number of ['CN-2026-000001', 'ST-2026-000001'])
      expect(mailOf(number).parsed.text).not.toContain('/pay/');
  });

  test('every invoice carries the payment reference and the full instructions, the others none', () => {
    for (const number of ['INV-2026-000001', 'INV-2026-000002']) {
      const { text } = mailOf(number).parsed;
      expect(text).toContain(`Payment reference\n${number}`);
      expect(text).toContain('Routing number (ACH only): 123456780');
      expect(text).toContain('Routing number (wire only): 100000007');
      expect(text).not.toContain('have changed');
    }
    for (const number of ['CN-2026-000001', 'ST-2026-000001']) {
      expect(mailOf(number).parsed.text).not.toMatch(/Payment reference|Routing number/);
    }
  });

  test('a sent e-mail and its Message-ID cannot be rewritten: emails_facts_stay', async () => {
    for (const change of [`status = 'queued', sent_at = NULL`, `message_id = message_id || 'x'`]) {
      await expect(world.sql(`UPDATE emails SET ${change}`)).rejects.toMatchObject({
        constraint: 'emails_facts_stay',
      });
    }
  });

  test('delivering again sends nothing and changes nothing', async () => {
    const before = await world.documents();
    expect(await world.deliver()).toEqual([]);
    expect(server.mails).toHaveLength(4);
    expect(await world.documents()).toEqual(before);
  });
});

describe('without a mail server', () => {
  beforeEach(() => startOver(world));

  test('each e-mail is a file of the outbox, named by its Message-ID, and counts as sent', async () => {
    const { environment } = world;
    world.environment = { ...environment, smtpUrl: undefined };
    try {
      await world.partners([partner(), partner({ partner_id: 'p-2' })]);
      await world.rows([quote(), quote({ partner_id: 'p-2' })]);
      await world.close();
      const before = server.mails.length;
      expect((await world.deliver()).map(({ status }) => status)).toEqual(['sent', 'sent']);
      expect(server.mails).toHaveLength(before);
    } finally {
      world.environment = environment;
    }
    const outbox = join(world.home, 'outbox');
    const ids = (await world.documents()).map(({ email }) => email?.message_id ?? '');
    expect(readdirSync(outbox).sort()).toEqual(ids.map((id) => `${id.slice(1, -1)}.eml`).sort());
    for (const id of ids) {
      const mail = await simpleParser(readFileSync(join(outbox, `${id.slice(1, -1)}.eml`)));
      expect(mail.messageId).toBe(id);
      expect(mail.attachments).toHaveLength(2);
    }
    expect(await world.deliver()).toEqual([]);
  });
});

describe('bank details', () => {
  beforeEach(() => startOver(world));

  /** Sells, closes and delivers one month, and gives the e-mail of its invoice. */
  async function monthOf(month: string, sales: Record<string, unknown> = {}): Promise<string> {
    const [year, number] = month.split('-').map(Number) as [number, number];
    world.at(new Date(Date.UTC(year, number, 2)).toISOString());
    await world.rows([quote({ accepted_at: `${month}-10T12:00:00Z`, ...sales })]);
    await world.close(month);
    server.mails.length = 0;
    expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
    return server.mails[0]?.parsed.text ?? '';
  }

  async function moveAccount(): Promise<void> {
    const { ach } = world.settings.instructions['USD'] ?? {};
    if (ach === undefined) throw new Error('the sandbox has no ACH instructions');
    const moved = { ...world.settings.instructions['USD'], ach: { ...ach, account_number: '999' } };
    await adopt(world, 'instructions', { ...world.settings.instructions, USD: moved });
  }

  test('that changed are announced once, on the next invoice that carries them', async () => {
    await world.partners([partner()]);
    expect(await monthOf('2026-07')).not.toContain('have changed');
    await moveAccount();
    const august = await monthOf('2026-08');
    expect(august).toContain('Our bank details have changed');
    expect(august).toContain('Account number: 999');
    expect(await monthOf('2026-09')).not.toContain('have changed');
    expect(await world.sql(`SELECT instructions_changed FROM document_pdfs ORDER BY document_id`)).toEqual([
      { instructions_changed: false },
      { instructions_changed: true },
      { instructions_changed: false },
    ]);
  });

  test('are nothing new on a first invoice, nor in another currency', async () => {
    await world.partners([partner()]);
    await monthOf('2026-07');
    await moveAccount();
    const euro = { currency: 'EUR', spotPrice: '10', partnerCut: '3', invoiceAmount: '7' };
    expect(await monthOf('2026-08', euro)).not.toContain('have changed');
    await world.partners([partner({ partner_id: 'p-2' })]);
    expect(await monthOf('2026-09', { partner_id: 'p-2' })).not.toContain('have changed');
    expect(await monthOf('2026-10')).toContain('have changed');
  });

  test('of an invoice that is drawn already stay as drawn, whenever it is sent', async () => {
    await world.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] } })]);
    await world.rows([quote()]);
    await world.close();
    expect(await world.deliver()).toMatchObject([{ status: 'held' }]);
    const [drawn] = await world.documents();
    await moveAccount();
    await world.partners([partner()]);
    server.mails.length = 0;
    await world.deliver();
    // Nobody should pay into the old account: the e-mail names none, and the payment page has the valid one.
    expect(server.mails[0]?.parsed.text).toContain('Our bank details have changed since this invoice was issued.');
    expect(server.mails[0]?.parsed.text).not.toMatch(/Account number|have changed since your last/);
    expect((await world.documents())[0]?.pdf).toEqual(drawn?.pdf);
  });
});

describe('an invoice with nothing to pay', () => {
  beforeEach(() => startOver(world));

  test('has no link and no instructions, whether the month came to zero or credit covers it', async () => {
    await world.partners([partner(), partner({ partner_id: 'p-2' })]);
    const [sold, undone] = [quote({ accepted_at: '2026-05-10T12:00:00Z' }), quote({ partner_id: 'p-2' })];
    await world.rows([
      sold,
      reversal(sold, { accepted_at: '2026-06-10T12:00:00Z' }),
      quote(),
      undone,
      reversal(undone),
    ]);
    await world.close();
    server.mails.length = 0;
    await world.deliver();
    for (const [number, sentence] of [
      ['INV-2026-000002', 'Your credit covers this invoice in full.'],
      ['INV-2026-000003', 'No payment is needed.'],
    ] as const) {
      expect(await documentOf(number)).toMatchObject({ status: 'paid', payment_link: null, email: { status: 'sent' } });
      expect(mailOf(number).parsed.text).toContain(sentence);
      expect(mailOf(number).parsed.text).not.toMatch(/Routing number|\/pay\//);
    }
  });
});

describe('a document with more rows than an e-mail can carry', () => {
  beforeEach(() => startOver(world));

  test('goes out with its PDF alone, and says where the rows are', async () => {
    await world.partners([partner()]);
    await world.rows([quote()]);
    await world.close();
    await world.sql(GUARDS_OFF);
    await world.sql(`UPDATE documents SET entries = 20001`);
    await world.sql(GUARDS_ON);
    server.mails.length = 0;
    expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
    const { attachments, text } = mailOf('INV-2026-000001').parsed;
    expect(attachments.map(({ filename }) => filename)).toEqual(['INV-2026-000001.pdf']);
    expect(text).toContain('too long to attach.');
  });
});
