/** Drawn documents, read back as a recipient's programs would read them: their words, their places, their bytes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { getDocument, OPS, type PDFDocumentProxy, type PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { creditorReferenceOf, inFours } from '../../src/documents/creditor-reference.ts';
import { localeOf } from '../../src/documents/locale.ts';
import { renderDocument, unprintable } from '../../src/documents/pdf/render.ts';
import { readTemplate } from '../../src/documents/pdf/template.ts';
import type { DocumentSnapshot, VoidMark } from '../../src/documents/snapshot.ts';
import { Amount, groupThousands } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { pngLogo } from '../support/logos.ts';
import {
  ach,
  adjustment,
  creditNote,
  hugeAmount,
  instructions,
  internationalWire,
  issuerAddress,
  lateLines,
  line,
  snapshot,
  statement,
  usualLines,
  wire,
  zeroInvoice,
} from '../support/snapshots.ts';
import { someOf, times } from '../support/sweep.ts';
import { needs, tool } from '../support/tools.ts';

// --- Reading a PDF back ---------------------------------------------------------------------------------------------

interface Word {
  readonly text: string;
  readonly x: number;
  /** The baseline, up from the foot of the page. */
  readonly y: number;
  readonly width: number;
  readonly size: number;
  /** Whether it stands askew, as the watermark does. */
  readonly askew: boolean;
}

interface Page {
  readonly width: number;
  readonly height: number;
  readonly words: readonly Word[];
  /** Everything that stands upright, in the order in which it was drawn. */
  readonly text: string;
  readonly links: readonly string[];
  readonly roles: readonly string[];
  /** What figures say to who can't see them. */
  readonly alts: readonly string[];
  /** What is content of the page, and not decoration, in pieces. */
  readonly tagged: readonly string[];
}

interface Read {
  readonly pages: readonly Page[];
  readonly text: string;
  readonly info: Record<string, unknown>;
  readonly creator: string;
  readonly tagged: boolean;
  readonly showsTitle: boolean;
  readonly images: readonly { readonly width: number; readonly height: number }[];
}

interface StructureNode {
  readonly role?: string;
  readonly alt?: string;
  /** Of content: which piece it is. */
  readonly id?: string;
  readonly children?: readonly StructureNode[];
}

const rolesIn = (node: StructureNode): string[] => [
  ...(node.role === undefined ? [] : [node.role]),
  ...(node.children ?? []).flatMap(rolesIn),
];

const nodesIn = (node: StructureNode): StructureNode[] => [node, ...(node.children ?? []).flatMap(nodesIn)];

async function readPage(pdf: PDFDocumentProxy, number: number): Promise<Page> {
  const page = await pdf.getPage(number);
  const { width, height } = page.getViewport({ scale: 1 });
  const { items } = await page.getTextContent({ disableNormalization: true });
  const words = items.flatMap((item): Word[] => {
    if (!('str' in item) || item.str.trim() === '') return [];
    const [a = 0, b = 0, , , x = 0, y = 0] = item.transform as number[];
    return [{ text: item.str, x, y, width: item.width, size: Math.hypot(a, b), askew: Math.abs(b) > 0.01 }];
  });
  const structure = (await page.getStructTree()) as StructureNode;
  const annotations = (await page.getAnnotations()) as { url?: string }[];
  const upright = items.filter((item) => 'str' in item && Math.abs((item.transform as number[])[1] ?? 0) <= 0.01);
  return {
    width,
    height,
    words,
    text: upright.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join(''),
    links: annotations.flatMap(({ url }) => (url === undefined ? [] : [url])),
    roles: rolesIn(structure),
    alts: nodesIn(structure).flatMap(({ alt }) => (alt === undefined ? [] : [alt])),
    tagged: await taggedText(page, new Set(nodesIn(structure).flatMap(({ id }) => (id === undefined ? [] : [id])))),
  };
}

async function taggedText(page: PDFPageProxy, contentIds: ReadonlySet<string>): Promise<string[]> {
  const { items } = await page.getTextContent({ includeMarkedContent: true, disableNormalization: true });
  const texts: string[] = [];
  const open: boolean[] = [];
  for (const item of items) {
    if ('str' in item) {
      if (open.at(-1) === true && item.str.trim() !== '') texts.push(item.str);
    } else if (item.type === 'endMarkedContent') open.pop();
    else open.push(item.id !== undefined && contentIds.has(item.id));
  }
  return texts;
}

/** The sizes of the images that a page shows. */
async function imagesOf(pdf: PDFDocumentProxy): Promise<{ width: number; height: number }[]> {
  const { fnArray, argsArray } = await (await pdf.getPage(1)).getOperatorList();
  return fnArray.flatMap((operation, index) => {
    if (operation !== OPS.paintImageXObject) return [];
    const [, width, height] = argsArray[index] as [string, number, number];
    return [{ width, height }];
  });
}

/** What a reader of codes finds on the first page, printed at that many dots an inch. */
function scanned(pdf: Buffer, resolution: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'scan-'));
  try {
    execFileSync(tool('pdftoppm'), ['-r', resolution, '-gray', '-png', '-singlefile', '-', join(folder, 'page')], {
      input: pdf,
    });
    const output = execFileSync(tool('zbarimg'), ['--quiet', '--raw', join(folder, 'page.png')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return output.trim().split('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function read(bytes: Buffer): Promise<Read> {
  const pdf = await getDocument({ data: new Uint8Array(bytes), verbosity: 0, useSystemFonts: false }).promise;
  const pages = await Promise.all(Array.from({ length: pdf.numPages }, (_, index) => readPage(pdf, index + 1)));
  const { info, metadata } = await pdf.getMetadata();
  const marks = await pdf.getMarkInfo();
  const preferences = (await pdf.getViewerPreferences()) as { DisplayDocTitle?: boolean } | null;
  const images = await imagesOf(pdf);
  await pdf.destroy();
  return {
    images,
    pages,
    text: pages.map((page) => page.text).join('\n'),
    info: info as Record<string, unknown>,
    creator: String(metadata?.get('dc:creator') ?? ''),
    tagged: marks?.Marked === true,
    showsTitle: preferences?.DisplayDocTitle === true,
  };
}

const drawn = async (document: DocumentSnapshot): Promise<Read> => read(await renderDocument(document));

/** A text without its spaces: where a name breaks into lines is not what these tests are about. */
const tight = (text: string): string => text.replace(/\s+/g, '');

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const partner = snapshot().partner;
const issuer = snapshot().issuer;
const german = {
  line1: 'Speicherstadt 12',
  line2: '',
  city: 'Hamburg',
  region: '',
  postal_code: '20457',
  country: 'DE',
};

const eightLines = [
  ...usualLines,
  line('Booking Guard', 'quote_accepted', 1204, '21070.00', '5267.50'),
  line('Booking Guard', 'requote_accepted', 61, '732.00', '183.00'),
  line('Booking Guard', 'reversal', 30, '-525.00', '-131.25'),
];

const manyLines = Array.from({ length: 120 }, (_, index) =>
  line(
    `Policy ${String(index + 1).padStart(3, '0')} Cover`,
    'quote_accepted',
    index + 1,
    `${100 + index}.25`,
    '20.10',
    {
      month: index < 90 ? '2026-10' : '2026-08',
    },
  ),
);

const hugeLines = (currency: string) =>
  (['quote_accepted', 'requote_accepted', 'reversal'] as const).map((kind) => {
    const sign = kind === 'reversal' ? '-' : '';
    return line('Ticket Protection', kind, 123_456_789, sign + hugeAmount(currency), `${sign}2703092872887`, {
      currency,
    });
  });

// --- What it says ---------------------------------------------------------------------------------------------------

describe('an invoice', () => {
  test('says what is due, in which currency, by when, and for what', async () => {
    const { text } = await drawn(snapshot());
    expect(text).toContain('Invoice');
    expect(text).toContain('INV-2026-000042');
    expect(text).toContain('Amount due USD 19,907.85, by December 1, 2026');
    expect(text).toContain('Protection products sold in October 2026.');
  });

  test('names its issuer and its partner with everything that accounting asks for', async () => {
    const { text } = await drawn(
      snapshot({
        partner: {
          ...partner,
          tax_id: 'CA 123456789 RT0001',
          purchase_order: 'PO-77120',
          legal_note: 'Reverse charge: the recipient accounts for any tax due.',
        },
      }),
    );
    for (const fact of [
      'Fairweather Protection, Inc.',
      '48 Commercial Wharf, Floor 3',
      'Boston, MA 02110, United States',
      'billing@fairweather.example',
      '+1 617 555 0142',
      'Tax ID 04-1234567',
      'Harbour Lights Ticketing',
      '200 Queens Quay West',
      'Suite 410',
      'Toronto, ON M5J 2Y9',
      'Canada',
      'Tax ID CA 123456789 RT0001',
      'November 1, 2026',
      'December 1, 2026',
      'Net 30',
      'October 2026',
      '1,592',
      'p-harbour-lights',
      'PO-77120',
      'Reverse charge: the recipient accounts for any tax due.',
    ]) {
      expect(text).toContain(fact);
    }
  });

  test('shows every line, and totals that add up to what is due', async () => {
    const document = snapshot({ lines: [...usualLines, ...lateLines], credit_applied: '1250.00' });
    const { text } = await drawn(document);
    for (const each of document.lines) {
      for (const amount of [each.spotPrice, each.partnerCut, each.invoiceAmount]) {
        expect(text).toContain(groupThousands(amount));
      }
    }
    expect(text).toContain('All amounts in USD');
    expect(text).toMatch(/Subtotal for October 2026\s*27,773\.50\s*7,865\.65\s*19,907\.85/);
    expect(text).toMatch(/Recorded late for August 2026\s*Ticket Protection\s*Enrollments\s*4\s*180\.00/);
    expect(text).toMatch(/Subtotal for August 2026\s*90\.00\s*27\.00\s*63\.00/);
    expect(text).toMatch(/Total\s*27,863\.50\s*7,892\.65\s*19,970\.85/);
    expect(text).toMatch(/Credit applied\s*-1,250\.00/);
    expect(text).toMatch(/Amount due\s*USD 18,720\.85/);
  });

  test('has a section only for months that differ from its own', async () => {
    const { text } = await drawn(snapshot());
    expect(text).not.toContain('Recorded late');
    expect(text).not.toContain('Subtotal');
  });

  test('tells apart two policies that share a name', async () => {
    const first = line('Ticket Protection', 'quote_accepted', 1, '1.00', '0.30');
    const { text } = await drawn(snapshot({ lines: [first, { ...first, policy_id: 'tp-2027' }] }));
    expect(text).toContain('Ticket Protection (ticket-protection)');
    expect(text).toContain('Ticket Protection (tp-2027)');
  });

  test.each([
    [0, 'Due on receipt'],
    [1, 'Net 1'],
    [45, 'Net 45'],
  ])('states terms of %i days as "%s"', async (terms_days, words) => {
    expect((await drawn(snapshot({ terms_days }))).text).toContain(words);
  });

  test('of zero says that nothing is due and asks for no payment', async () => {
    const { text, pages } = await drawn(zeroInvoice({ instructions, payment_link: snapshot().payment_link }));
    expect(text).toContain('Nothing is due');
    expect(text).toContain('Protection products sold in October 2026. No payment is needed.');
    expect(text).toMatch(/Amount due\s*USD 0\.00/);
    expect(text).not.toContain('How to pay');
    expect(text).not.toContain(ach.routing_number);
    expect(pages.flatMap((page) => page.links)).toEqual([]);
  });

  test('that credit covers in full says so', async () => {
    const { text } = await drawn(snapshot({ credit_applied: '19907.85' }));
    expect(text).toContain('Nothing is due');
    expect(tight(text)).toContain(tight('USD 19,907.85 of credit covers this invoice in full'));
  });
});

describe('a credit note', () => {
  test('says that its amount is owed to the partner and what becomes of it', async () => {
    const { text } = await drawn(creditNote());
    expect(text).toContain('Credit note');
    expect(text).toContain('CN-2026-000003');
    expect(text).toContain('USD 567.00 owed to you');
    expect(tight(text)).toContain(
      tight('Credit for protection products, October 2026. You can deduct it from a payment'),
    );
    expect(tight(text)).toContain(tight('Otherwise we will apply it to your invoices in USD'));
    expect(text).toContain('Positive amounts are credits to you.');
    expect(text).not.toContain('How to pay');
    expect(text).not.toContain('Due date');
  });

  test('without lines still shows its total', async () => {
    const document = creditNote({ lines: [], spotPrice: '0.00', partnerCut: '0.00', invoiceAmount: '75.00' });
    expect((await drawn(document)).text).toMatch(/Owed to you\s*USD 75\.00/);
  });
});

describe('an adjustment', () => {
  test('says which invoice it credits, why, and how the credit is used', async () => {
    const { text } = await drawn(adjustment());
    expect(text).toContain('Credit note');
    expect(text).toContain('USD 1,250.00 credited to you');
    expect(tight(text)).toContain(tight('Credit against invoice INV-2026-000042. USD 1,250.00 is taken off'));
    expect(tight(text)).toContain(tight('that invoice, which leaves USD 18,657.85 to pay.'));
    expect(text).toMatch(/Against invoice\s*INV-2026-000042/);
    expect(text).toContain('Reason: Enrollments of the cancelled harbour festival, as agreed on 12 November');
    expect(text).toMatch(/Credit against invoice INV-2026-000042\s*1,250\.00\s*Credited to you\s*USD 1,250\.00/);
    // It stands for no rows.
    expect(text).not.toMatch(/Enrollments\s*\d|Your share|How to pay/);
  });

  test('of a long reason and a huge amount stays within its pages', async () => {
    const { pages, text } = await drawn(
      adjustment({ reason: 'Why? '.repeat(1500), invoiceAmount: '999999999999999.99' }),
    );
    expect(pages.length).toBeGreaterThan(1);
    expect(text.match(/Why\?/g)).toHaveLength(1500);
    expectWithinMargins(pages);
    expectNoOverlap(pages);
  });
});

describe('a replacement', () => {
  test.each([snapshot, creditNote, statement])('names the void document that it replaces', async (make) => {
    const { text } = await drawn(make({ replaces: 'INV-2026-000040' }));
    expect(text).toMatch(/Replaces\s*INV-2026-000040/);
    expect(tight(text)).toContain(tight('This document replaces INV-2026-000040, which is void.'));
  });
});

test('terms to the end of a month and a day of a month are printed in words', async () => {
  const { text } = await drawn(snapshot({ terms_end_of_month: true, terms_day: 15 }));
  expect(tight(text)).toContain(tight('Net 30, end of month, next day 15 of a month'));
});

test('a replacement that keeps an earlier due date says so instead of terms that contradict it', async () => {
  const replacement = snapshot({ replaces: 'INV-2026-000040', issued_on: '2026-12-15', due_date_kept: true });
  expect((await drawn(replacement)).text).toMatch(/Terms\s*Due date of the replaced\s*invoice/);
  const punctual = snapshot({ replaces: 'INV-2026-000040' });
  expect((await drawn(punctual)).text).toMatch(/Terms\s*Net 30/);
});

test('an invoice for missing shares says what it is for, and shows neither sales nor the partner’s share', async () => {
  const lines = [line('Ticket Protection', 'quote_accepted', 2, '19.32', '0.00')];
  const { text } = await drawn(snapshot({ purpose: 'missing_shares', lines }));
  expect(tight(text)).toContain(
    tight('Our share of payments for October 2026 that the payment processor did not route to us.'),
  );
  expect(text).toMatch(/Policy\s*Type\s*Count\s*Net due/);
  expect(text).toMatch(/Ticket Protection\s*Enrollments\s*2\s*19\.32/);
  expect(text).toMatch(/Total\s*19\.32\s*Amount due\s*USD 19\.32/);
  expect(text).not.toMatch(/Sales|Your share/);
});

test('the last checkpoint stands at the end, in full', async () => {
  const root = '9f2c4e1ab8d07e65c3f1a2b4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708';
  const { text } = await drawn(snapshot({ checkpoint: { month: '2026-09' as Month, size: 3028, root } }));
  expect(text).toContain(`Checkpoint of September 2026: 3,028 facts, root ${root}`);
  expect((await drawn(snapshot())).text).not.toContain('Checkpoint');
});

test('a table that just misses the page is set closer, so that its last rows and its total do not move without it', async () => {
  const lines = Array.from({ length: 22 }, (_, index) =>
    line(`Policy ${index + 1}`, 'quote_accepted', index + 1, '100.25', '20.10'),
  );
  const { pages } = await drawn(snapshot({ lines }));
  expect(pages).toHaveLength(2);
  expect(pages[0]?.text).toMatch(/Policy 22[\s\S]*Amount due\s*USD 1,763\.30/);
  expect(pages[1]?.text).not.toContain('Policy');
});

describe('a void copy', () => {
  const voided = { on: '2026-11-12', reason: 'Billed to the wrong entity', replacedBy: 'INV-2026-000050' };
  const drawnVoid = async (document: DocumentSnapshot, facts: VoidMark = voided) =>
    read(await renderDocument(document, { void: facts }));

  test('says on every page, in its text and across it, that it is void', async () => {
    for (const sandbox of [false, true]) {
      const { pages, info } = await drawnVoid(snapshot({ lines: manyLines, sandbox }));
      expect(pages.length).toBeGreaterThan(2);
      for (const page of pages) {
        const banner = `VOID SINCE November 12, 2026${sandbox ? ' · SANDBOX · NOT A REAL INVOICE' : ''}`;
        expect(page.text.trimStart().slice(0, banner.length)).toBe(banner);
        expect(page.words.filter((word) => word.askew).map((word) => word.text)).toEqual(['VOID']);
        // As content of the page and not as decoration: it has a paragraph on each.
        expect(page.tagged.join(' ')).toContain(banner);
      }
      expect(info).toMatchObject({ Title: 'VOID: Invoice INV-2026-000042' });
    }
  });

  test('shows when and why it was voided and what replaces it, above the document', async () => {
    const { text } = await drawnVoid(snapshot());
    expect(text).toContain('This invoice is void. Do not pay it.');
    expect(text).toContain(
      'Voided on November 12, 2026. INV-2026-000050 replaces it. Reason: Billed to the wrong entity',
    );
    expect(text.indexOf('Do not pay it')).toBeLessThan(text.indexOf('Void: nothing is due'));
    expect(text).toMatch(/Amount due when issued\s*USD 19,907\.85/);
    expect(text).not.toMatch(/Amount due USD|Due date|Terms/);
    for (const each of usualLines) expect(text).toContain(groupThousands(each.invoiceAmount));
  });

  test('offers no way to pay', async () => {
    const { text, pages } = await drawnVoid(snapshot());
    expect(text).not.toContain('How to pay');
    expect(text).not.toContain(ach.account_number);
    expect(pages.flatMap((page) => page.links)).toEqual([]);
    expect(pages.flatMap((page) => page.roles)).not.toContain('Figure');
  });

  test('without a replacement says so', async () => {
    const { text } = await drawnVoid(creditNote(), { ...voided, replacedBy: null });
    expect(text).toContain('This credit note is void. It gives no credit.');
    expect(text).toContain('Nothing replaces it so far.');
  });
});

describe('a statement', () => {
  test('says that nothing is due because the processor routes our share', async () => {
    const { text } = await drawn(statement());
    expect(text).toContain('Activity statement');
    expect(text).toContain('Nothing is due');
    expect(tight(text)).toContain(tight('Our share of USD 19,907.85 reaches us through the payment processor.'));
    expect(text).toMatch(/Total\s*27,773\.50\s*7,865\.65\s*19,907\.85/);
    expect(text).toMatch(/Through the payment processor\s*-19,907\.85/);
    expect(text).toMatch(/Amount due\s*USD 0\.00/);
    expect(text).not.toContain('How to pay');
  });
});

// --- How to pay -----------------------------------------------------------------------------------------------------

describe('how to pay', () => {
  test('offers the link first, then ACH, then wire, each in full', async () => {
    const { text } = await drawn(snapshot());
    const order = ['How to pay', 'View and pay', 'ACH transfer', 'Wire transfer'].map((words) => text.indexOf(words));
    expect(order.every((at) => at > 0)).toBe(true);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    const card = tight(text);
    for (const fact of [
      'Routing number (ACH only) 011000015',
      'Routing number (wire only) 011000028',
      'Account number 4400123456789',
      'Account type Checking',
      'BIC (SWIFT code) FHNBUS33',
      'Account holder Fairweather Protection, Inc. 48 Commercial Wharf, Floor 3, Boston, MA 02110, United States',
      'Bank First Harbor National Bank 1 Federal Street, Boston, MA 02110, United States',
    ]) {
      expect(card).toContain(tight(fact));
    }
  });

  test('prints the payment reference beside each bank account', async () => {
    const { text } = await drawn(snapshot());
    expect(tight(text).match(/PaymentreferenceINV-2026-000042/g)).toHaveLength(2);
  });

  test('prints the link in full and makes it clickable', async () => {
    const { text, pages } = await drawn(snapshot());
    const link = snapshot().payment_link as string;
    expect(text).toContain(link);
    expect(new Set(pages.flatMap((page) => page.links))).toEqual(new Set([link]));
  });

  test('prints the link as a code that a reader reads from the page', async (context) => {
    needs('zbarimg', context);
    needs('pdfinfo', context);
    const long = `https://pay.example/i/${'a1'.repeat(300)}`.padEnd(666, '-');
    // As it comes from a fax or a copier; and what has most squares, from a printer too.
    const links = [
      [snapshot().payment_link as string, '150'],
      ['https://x.example/1', '150'],
      ['https://zürich.example/ü', '150'],
      [long, '150'],
      [long, '300'],
    ] as const;
    for (const [link, resolution] of someOf(links, times({ few: 2, short: 5, long: 5 }))) {
      expect(scanned(await renderDocument(snapshot({ payment_link: link })), resolution)).toEqual([new URL(link).href]);
    }
  }, 120_000);

  describe('a SEPA transfer', () => {
    const reference = creditorReferenceOf('INV-2026-000042') as string;
    const sepa = (changes: Partial<DocumentSnapshot> = {}) =>
      snapshot({
        ...{ currency: 'EUR', creditor_reference: reference, instructions: { wire: internationalWire } },
        ...changes,
      });

    test('has the creditor reference beside the number', async () => {
      const { text, pages } = await drawn(sepa());
      expect(tight(text)).toContain(tight('Payment reference INV-2026-000042'));
      expect(tight(text)).toContain(tight(`or creditor reference ${inFours(reference)}`));
      expect(tight(text)).toContain(tight('Scan with a banking app'));
      expect(pages.flatMap(({ alts }) => alts)).toContain('QR code of the SEPA transfer for INV-2026-000042');
      expectWithinMargins(pages);
    });

    test('is a code with the fields of the guideline, which a reader reads from the page', async (context) => {
      needs('zbarimg', context);
      needs('pdfinfo', context);
      const long = 'Ä'.repeat(80);
      const holders = [internationalWire.account_holder, long];
      for (const holder of someOf(holders, times({ few: 1, short: 2, long: 2 }))) {
        const wire = { ...internationalWire, account_holder: holder };
        const pdf = await renderDocument(sepa({ instructions: { wire }, payment_link: null }));
        expect(scanned(pdf, '150')).toEqual([
          'BCD',
          '002',
          '1',
          'SCT',
          internationalWire.bic,
          holder === long ? 'Ä'.repeat(70) : holder,
          'DE89370400440532013000',
          `EUR${snapshot().amount_due}`,
          '',
          reference,
        ]);
      }
      const both = scanned(await renderDocument(sepa()), '150');
      expect(both).toContain(snapshot().payment_link);
      expect(both).toContain(reference);
    }, 120_000);

    test('has no code outside SEPA, above the limit of the scheme, or without a reference', async () => {
      const { bic, ...account } = internationalWire;
      const turkish = { ...account, bic, iban: 'TR330006100519786457841326' };
      for (const each of [
        sepa({ currency: 'GBP' }),
        sepa({ instructions: { wire: turkish } }),
        sepa({ amount_due: '1000000000.00' }),
        sepa({ creditor_reference: null }),
      ]) {
        expect(tight((await drawn(each)).text)).not.toContain(tight('Scan with a banking app'));
      }
    });
  });

  test('prints no code if the link cannot be opened or is too long', async () => {
    for (const link of ['javascript:alert(1)', `https://x.example/${'a'.repeat(660)}`]) {
      const { text, pages } = await drawn(snapshot({ payment_link: link }));
      expect(text).not.toContain('Scan the code');
      expect(pages.flatMap((page) => page.roles)).not.toContain('Figure');
      expectWithinMargins(pages);
    }
  });

  test('makes only web addresses clickable', async () => {
    const { text, pages } = await drawn(snapshot({ payment_link: 'javascript:alert(1)' }));
    expect(text).toContain('javascript:alert(1)');
    expect(pages.flatMap((page) => page.links)).toEqual([]);
  });

  test('groups an IBAN in fours and names the intermediary bank', async () => {
    const { text } = await drawn(snapshot({ currency: 'EUR', instructions: { wire: internationalWire } }));
    expect(text).toContain('DE89 3704 0044 0532 0130 00');
    expect(tight(text)).toContain(tight('Bank Hanseatische Handelsbank AG Neuer Wall 10, 20354 Hamburg, Germany'));
    expect(tight(text)).toContain(tight('Intermediary bank Correspondent Bank of New York 225 Liberty Street'));
    expect(tight(text)).toContain(tight("Intermediary's BIC IRVTUS3NXXX"));
    expect(text).not.toContain('ACH');
  });

  test('warns when the bank details have changed, and only then', async () => {
    const warning = 'Our bank details have changed since your last invoice.';
    const changed = await drawn(snapshot({ instructions_changed: true }));
    expect(changed.text).toContain(warning);
    expect(tight(changed.text)).toContain(tight('confirm them by calling us on a phone number that you already know'));
    expect(changed.text.indexOf(warning)).toBeLessThan(changed.text.indexOf('ACH transfer'));
    expect((await drawn(snapshot())).text).not.toContain(warning);
  });

  test('without a link or instructions asks the partner to ask', async () => {
    const { text } = await drawn(snapshot({ payment_link: null, instructions: null }));
    expect(text).toContain('Please ask us how to pay: billing@fairweather.example or +1 617 555 0142.');
  });
});

// --- Names and amounts ----------------------------------------------------------------------------------------------

describe('names', () => {
  test.each([
    '<b>Bold</b> & Sons',
    "=cmd|' /C calc'!A0 Travel",
    'Nguyễn Trãi Du Lịch',
    'Ελληνικά Εισιτήρια Α.Ε.',
    'Кассир и Партнёры',
    'Zażółć Gęślą Jaźń',
    'Office of Affluent Fjord Traffic',
    'A'.repeat(130),
    'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft-'.repeat(2).slice(0, 130),
  ])('come out as they are: %s', async (name) => {
    const { text, pages } = await drawn(
      snapshot({ partner: { ...partner, name }, lines: [line(name, 'quote_accepted', 1, '10.00', '3.00')] }),
    );
    // In the address and in the table.
    expect(tight(text).split(tight(name)).length - 1).toBeGreaterThanOrEqual(2);
    expectWithinMargins(pages);
    expectNoOverlap(pages);
  });

  test('written with separate marks come out in their composed form', async () => {
    const { text } = await drawn(snapshot({ partner: { ...partner, name: 'Nguyễn Trãi'.normalize('NFD') } }));
    expect(text).toContain('Nguyễn Trãi'.normalize('NFC'));
  });

  test('in scripts without glyphs show their code points, never empty boxes', async () => {
    const name = 'Tokyo 株式会社 עִברית مرحبا 👨‍👩‍👧 Ltd';
    const { text } = await drawn(snapshot({ partner: { ...partner, name } }));
    for (const shown of [
      'Tokyo [U+682A U+5F0F U+4F1A U+793E]',
      '[U+05E2 U+05B4 U+05D1 U+05E8 U+05D9 U+05EA]',
      '[U+0645 U+0631 U+062D U+0628 U+0627]',
      '[U+1F468 U+1F469 U+1F467] Ltd',
    ]) {
      expect(tight(text)).toContain(tight(shown));
    }
    expect(text).not.toContain('株');
  });

  test('lose line breaks, control characters and bidi controls', async () => {
    const name = 'Harbour\r\nLights\u0000\t\u202eTick\u200beting\u2066\u00ad';
    expect((await drawn(snapshot({ partner: { ...partner, name } }))).text).toContain('Harbour Lights Ticketing');
  });

  test('of hundreds of unprintable characters flow over pages and are never cut off', async () => {
    const long = '字'.repeat(200);
    const { pages, text } = await drawn(
      snapshot({
        issuer: { ...issuer, legal_name: long, address: { ...german, line1: long } },
        partner: { ...partner, name: long, address: { ...german, line1: long, line2: long, city: long } },
        lines: [line(long, 'quote_accepted', 4, '180.00', '54.00')],
        instructions: { ach: { ...ach, account_holder: long }, wire: internationalWire },
      }),
    );
    expectWithinMargins(pages);
    expectNoOverlap(pages);
    // Issuer and street; partner and its three address lines; policy; account holder.
    expect(text.match(/U\+5B57/g)?.length).toBeGreaterThanOrEqual(200 * 8);
    expect(tight(text)).toContain('PaymentreferenceINV-2026-000042');
  });
});

describe('unprintable', () => {
  test('lists each character without a glyph once, in order', () => {
    expect(unprintable('株式株 é 👍🏽')).toEqual(['株', '式', '👍', '🏽']);
  });

  test('finds nothing wrong with Latin, Greek, Cyrillic and Vietnamese, or with what is stripped anyway', () => {
    expect(unprintable('Zażółć Ελληνικά Партнёры Nguyễn — «€£₫» \r\n\u202e\u00a0')).toEqual([]);
  });

  test('finds broken text', () => {
    expect(unprintable('a\ud800\ufffd')).toEqual(['\ud800', '\ufffd']);
  });

  test('finds nothing in the labels and country names of the template', () => {
    const texts = (value: unknown): string[] =>
      typeof value === 'string' ? [value] : Object.values(value as object).flatMap(texts);
    const { labels, countries } = readTemplate();
    const inspected = [...texts(labels), ...texts(countries)];
    expect(inspected.length).toBeGreaterThan(300);
    expect(inspected.flatMap(unprintable)).toEqual([]);
  });
});

describe('a logo', () => {
  test('is above the issuer’s name, which is its alternative text', async () => {
    for (const color of [2, 6] as const) {
      const logo = pngLogo({ color });
      const { text, pages, images } = await drawn(snapshot({ issuer: { ...issuer, logo } }));
      expect(text).toContain('Fairweather Protection, Inc.');
      expect(pages[0]?.alts).toContain('Fairweather Protection, Inc.');
      expect(images).toEqual([{ width: 240, height: 60 }]);
      expect(pages).toHaveLength(1);
      expectWithinMargins(pages);
    }
    expect((await drawn(snapshot())).images).toEqual([]);
  });

  test('of any shape leaves room for the rest', async () => {
    for (const [width, height] of [
      [1900, 100],
      [100, 1900],
      [16, 16],
    ] as const) {
      const { pages } = await drawn(snapshot({ issuer: { ...issuer, logo: pngLogo({ width, height }) } }));
      expect(pages).toHaveLength(1);
      expectNoOverlap(pages);
    }
  });
});

describe('amounts', () => {
  test.each([
    ['DE', '1 December 2026'],
    ['FR', '1 December 2026'],
    ['US', 'December 1, 2026'],
  ])('and dates are written in English, dates in the order of the partner’s country: %s', async (country, date) => {
    const lines = usualLines.map((each) => ({ ...each }));
    const address = { ...german, country };
    const { text, pages } = await drawn(
      snapshot({ currency: 'EUR', lines, partner: { ...partner, address }, instructions: { wire: internationalWire } }),
    );
    for (const shown of [`Amount due EUR 19,907.85, by ${date}`, '18,540.00', '1,592']) expect(text).toContain(shown);
    expectNoOverlap(pages);
  });

  test.each([
    ['JPY', '1854000', 'JPY 1,854,000'],
    ['USD', '1854.10', 'USD 1,854.10'],
    ['KWD', '1854.125', 'KWD 1,854.125'],
    ['CLF', '1854.1255', 'CLF 1,854.1255'],
  ])('in %s have that currency’s digits and its code', async (currency, amount, shown) => {
    const lines = [line('Ticket Protection', 'quote_accepted', 412, amount, '0', { currency })];
    const { text } = await drawn(snapshot({ currency, lines, instructions: { wire: internationalWire } }));
    expect(text).toContain(`Amount due ${shown}, by December 1, 2026`);
    expect(text).toContain(`All amounts in ${currency}`);
  });

  test.each(['JPY', 'USD', 'KWD', 'CLF'])(
    'as large as billions of billions fit their columns in %s',
    async (currency) => {
      for (const address of [issuerAddress, german]) {
        const document = snapshot({ currency, lines: hugeLines(currency), partner: { ...partner, address } });
        const { pages, text } = await drawn(document);
        for (const each of document.lines) expect(text).toContain(groupThousands(each.spotPrice));
        // In one piece: the amounts leave the policy's column wide enough to be read.
        expect(text).toContain('Ticket Protection');
        expect(text).toContain(localeOf(address.country).amount(Amount.of(document.amount_due, currency)));
        expectWithinMargins(pages);
        expectNoOverlap(pages);
      }
    },
  );

  test('as large as a row may hold, and sums of them, fit too', async () => {
    const largest = `${'9'.repeat(15)}.9999`;
    const lines = eightLines.map(({ policy_name, kind }) =>
      line(policy_name, kind, 1, kind === 'reversal' ? `-${largest}` : largest, '0', { currency: 'CLF' }),
    );
    const { pages, text } = await drawn(snapshot({ currency: 'CLF', lines }));
    expect(text).toContain('-999,999,999,999,999.9999');
    expect(text).toMatch(/Amount due\s*CLF 1,999,999,999,999,999\.9998/);
    expectWithinMargins(pages);
    expectNoOverlap(pages);
  });

  test('of one column end at one edge', async () => {
    const { pages } = await drawn(snapshot());
    const ends = (pages[0]?.words ?? [])
      .filter((word) => /^-?[\d,]+\.\d\d$/.test(word.text))
      .map((word) => (word.x + word.width).toFixed(1));
    expect(new Set(ends).size).toBe(3);
    expect(ends.length).toBe(3 * (usualLines.length + 1));
  });
});

// --- Pages ----------------------------------------------------------------------------------------------------------

const SIDE_MARGIN = 54;
const LEAST_MARGIN_ABOVE_BELOW = 30;
const TOLERANCE = 0.1;

function expectWithinMargins(pages: readonly Page[]): void {
  const words = pages.flatMap((page) => page.words.filter((word) => !word.askew).map((word) => ({ ...word, page })));
  expect(words.length).toBeGreaterThan(0);
  const outside = words.filter(
    ({ x, y, width, text, page }) =>
      x < SIDE_MARGIN - TOLERANCE ||
      x + width > page.width - SIDE_MARGIN + TOLERANCE ||
      y < LEAST_MARGIN_ABOVE_BELOW ||
      (y > page.height - LEAST_MARGIN_ABOVE_BELOW && !text.startsWith('SANDBOX')),
  );
  expect(outside.map((word) => word.text)).toEqual([]);
}

/** No two pieces of text on one line of the page reach into each other. */
function expectNoOverlap(pages: readonly Page[]): void {
  const overlaps = pages.flatMap(({ words }) => {
    const upright = words.filter((word) => !word.askew);
    return upright.flatMap((one) =>
      upright
        .filter((other) => other !== one && Math.abs(other.y - one.y) < Math.min(one.size, other.size) / 2)
        .filter((other) => other.x >= one.x && other.x < one.x + one.width - TOLERANCE)
        .map((other) => `«${one.text}» and «${other.text}»`),
    );
  });
  expect(overlaps).toEqual([]);
}

describe('pages', () => {
  test.each([
    ['Letter', issuerAddress, [612, 792]],
    ['A4', german, [595.28, 841.89]],
  ] as const)('of a usual invoice are one, on %s as its partner’s country prints', async (_, address, size) => {
    for (const sandbox of [false, true]) {
      const { pages } = await drawn(
        snapshot({
          sandbox,
          lines: eightLines,
          partner: {
            ...{ ...partner, address, tax_id: 'CA 123456789' },
            ...{ purchase_order: 'PO-77120', legal_note: 'Reverse charge.' },
          },
        }),
      );
      expect(pages).toHaveLength(1);
      expect([pages[0]?.width, pages[0]?.height].map((points) => points?.toFixed(2))).toEqual(
        size.map((points) => points.toFixed(2)),
      );
      expectWithinMargins(pages);
      expectNoOverlap(pages);
    }
  });

  test('of a long invoice are numbered and say which invoice they continue', async () => {
    const { pages, text } = await drawn(snapshot({ lines: manyLines }));
    expect(pages.length).toBeGreaterThan(2);
    for (const [index, page] of pages.entries()) {
      expect(page.text).toContain(`Page ${index + 1} of ${pages.length}`);
      const headings = /Policy\s*Type\s*Count\s*Sales\s*Your share\s*Net due/;
      if (index > 0) {
        expect(page.text).toContain('Invoice INV-2026-000042, continued');
        expect(page.text).toContain('Harbour Lights Ticketing');
        expect(page.text).toMatch(headings);
      }
    }
    expect(text).toContain('Recorded late for August 2026, continued');
    for (const { policy_name } of manyLines) expect(text).toContain(policy_name);
    expectWithinMargins(pages);
    expectNoOverlap(pages);
  });

  test('never carry totals without a line above them', async () => {
    // Around the counts at which totals go to the next page.
    for (let count = 14; count <= 34; count += times({ few: 4, short: 1, long: 1 })) {
      const { pages } = await drawn(snapshot({ lines: manyLines.slice(0, count) }));
      const page = pages.find(({ text }) => /Total\s*[\d,]+\.\d\d/.test(text));
      expect(page?.text).toContain(manyLines[count - 1]?.policy_name);
    }
  }, 60_000);

  test('never carry totals without the subtotal and the line above them', async () => {
    const late = (count: number) => [...manyLines.slice(0, count), ...manyLines.slice(90, 93)];
    for (let count = 8; count <= 30; count += times({ few: 4, short: 1, long: 1 })) {
      const { pages } = await drawn(snapshot({ lines: late(count) }));
      const page = pages.find(({ text }) => /\nTotal\s*[\d,]+\.\d\d/.test(text));
      expect(page?.text).toContain('Subtotal for August 2026');
      expect(page?.text).toContain('Policy 093 Cover');
    }
  }, 60_000);

  test('fill the rest of a page with the first ways to pay, and never split one or leave the heading alone', async () => {
    let split = 0;
    for (let count = 2; count <= 20; count += 1) {
      const { pages } = await drawn(snapshot({ lines: manyLines.slice(0, count), instructions_changed: true }));
      const pageOf = (words: string) => pages.findIndex(({ text }) => text.includes(words));
      expect(pageOf('How to pay')).toBe(pageOf('have changed since'));
      expect(pageOf('not one taken from')).toBe(pageOf('have changed since'));
      expect(pageOf('ACH transfer')).toBe(pageOf(wire.bic as string));
      const order = ['have changed since', 'View and pay', 'ACH transfer'].map(pageOf);
      expect(order).toEqual([...order].sort());
      if (order[0] !== order[2]) split += 1;
    }
    expect(split).toBeGreaterThan(0);
  }, 60_000);
});

describe('a sandbox document', () => {
  test.each([
    ['invoice', snapshot, 'SANDBOX · NOT A REAL INVOICE'],
    ['credit note', creditNote, 'SANDBOX · NOT A REAL CREDIT NOTE'],
    ['statement', statement, 'SANDBOX · NOT A REAL STATEMENT'],
  ] as const)('(%s) says so on every page, in a banner and across the page', async (_, make, mark) => {
    const { pages } = await drawn(make({ sandbox: true, lines: manyLines }));
    expect(pages.length).toBeGreaterThan(2);
    for (const page of pages) {
      expect(page.text.trimStart().slice(0, mark.length)).toBe(mark);
      const across = page.words.filter((word) => word.askew);
      expect(across.map((word) => word.text).join('')).toBe(mark);
    }
  });

  test('differs from a real one, which has no such word', async () => {
    const { pages, text } = await drawn(snapshot({ lines: manyLines }));
    expect(text.toUpperCase()).not.toContain('SANDBOX');
    expect(pages.flatMap((page) => page.words.filter((word) => word.askew))).toEqual([]);
  });
});

// --- The file -------------------------------------------------------------------------------------------------------

describe('the file', () => {
  const every: ReadonlyArray<readonly [string, DocumentSnapshot]> = [
    ['usual invoice', snapshot()],
    ['long sandbox invoice', snapshot({ lines: manyLines, sandbox: true })],
    ['credit note', creditNote()],
    ['statement', statement()],
    ['adjustment', adjustment()],
    ['invoice with a logo', snapshot({ issuer: { ...issuer, logo: pngLogo() } })],
    ['invoice of a partner with a difficult name', snapshot({ partner: { ...partner, name: '<b>&</b> 株 Nguyễn' } })],
  ];

  test('has a title, a language, an author, and the date of issue whatever the time zone', async () => {
    const { info, creator, tagged, showsTitle } = await drawn(
      snapshot({ issuer: { ...issuer, legal_name: '<Fair> & Weather «Ltd»' } }),
    );
    expect(info).toMatchObject({
      Title: 'Invoice INV-2026-000042',
      Language: 'en',
      CreationDate: 'D:20261101120000Z',
      ModDate: 'D:20261101120000Z',
      PDFFormatVersion: '1.7',
    });
    expect(creator).toBe('<Fair> & Weather «Ltd»');
    expect(tagged).toBe(true);
    expect(showsTitle).toBe(true);
  });

  test('is tagged: headings, lists, a table with headers, links', async () => {
    const { pages } = await drawn(snapshot({ lines: [...usualLines, ...lateLines], instructions_changed: true }));
    const roles = pages.flatMap((page) => page.roles);
    const count = (role: string) => roles.filter((each) => each === role).length;
    expect(count('H1')).toBe(1);
    expect(count('H2')).toBe(3);
    expect(count('H3')).toBe(4);
    for (const role of ['Document', 'Table', 'THead', 'TBody', 'TFoot', 'TR', 'TH', 'TD', 'L', 'LI', 'Lbl', 'LBody']) {
      expect(roles).toContain(role);
    }
    expect(count('Link')).toBe(2);
    expect(count('Figure')).toBe(1);
    expect(pages.flatMap((page) => page.alts)).toContain('QR code of the payment page of INV-2026-000042');
  });

  test('has as many cells in each row of the table as it has columns', async () => {
    const { pages } = await drawn(snapshot({ lines: [...usualLines, ...lateLines], credit_applied: '5.00' }));
    const cells = pages
      .flatMap((page) => page.roles)
      .join(' ')
      .split('TR')
      .slice(1)
      .map((row) => row.match(/T[HD]\b/g)?.length);
    expect(cells.length).toBeGreaterThan(10);
    expect(new Set(cells)).toEqual(new Set([6]));
  });

  test.for(every)('is sound to qpdf: %s', async ([, document], context) => {
    needs('qpdf', context);
    const folder = mkdtempSync(join(tmpdir(), 'draw-'));
    try {
      const file = join(folder, 'document.pdf');
      writeFileSync(file, await renderDocument(document));
      const { status, stdout, stderr } = spawnSync(tool('qpdf'), ['--check', file], { encoding: 'utf8' });
      expect({ status, said: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, said: '' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.for(every)('has a structure that poppler reads: %s', async ([, document], context) => {
    needs('pdfinfo', context);
    const { stdout, stderr } = spawnSync(tool('pdfinfo'), ['-struct-text', '-'], {
      input: await renderDocument(document),
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^Document\n {2}(P|H1)/);
    expect(stdout).toMatch(/\n {6}TH \(inline\)|\n {6,8}TH/);
  });

  test('embeds subsets of its two fonts, with their characters', async (context) => {
    needs('pdffonts', context);
    const listed = execFileSync(tool('pdffonts'), ['-'], { input: await renderDocument(snapshot()), encoding: 'utf8' });
    const fonts = listed.trim().split('\n').slice(2);
    expect(fonts).toHaveLength(2);
    for (const font of fonts) expect(font).toMatch(/NotoSans-(Regular|Bold)\s+CID TrueType\s+Identity-H\s+yes yes yes/);
  });
});

// --- The same bytes -------------------------------------------------------------------------------------------------

describe('the same snapshot', () => {
  const snapshots: readonly DocumentSnapshot[] = [
    snapshot(),
    // A composed letter, then a part of it: a font that remembered would not know what the part stands for.
    snapshot({ partner: { ...partner, name: 'Žofie' } }),
    snapshot({ partner: { ...partner, name: 'Zofie' } }),
    snapshot({ lines: manyLines, sandbox: true }),
    creditNote(),
    statement(),
    adjustment(),
    snapshot({
      issuer: { ...issuer, logo: pngLogo() },
      checkpoint: { month: '2026-09' as Month, size: 3028, root: `${'aB'.repeat(21)}a=` },
    }),
    snapshot({ partner: { ...partner, address: { ...german, country: 'IN' } }, replaces: 'INV-2026-000040' }),
    snapshot({ currency: 'KWD', lines: hugeLines('KWD'), instructions: { wire: internationalWire } }),
  ];
  const first: string[] = [];

  beforeAll(async () => {
    for (const each of snapshots) first.push(sha256(await renderDocument(each)));
  });

  test('gives the same bytes again, after other documents and in another order', async () => {
    const again: string[] = [];
    for (const each of [...snapshots].reverse()) again.unshift(sha256(await renderDocument(each)));
    expect(again).toEqual(first);
    expect(new Set(first).size).toBe(snapshots.length);
  });

  test('gives the same bytes while other documents are drawn', async () => {
    const together = await Promise.all(
      [...snapshots, ...snapshots].map(async (each) => sha256(await renderDocument(each))),
    );
    expect(together).toEqual([...first, ...first]);
  });

  test('gives words that can be copied, whatever was drawn before', async () => {
    for (const name of ['Ķirsis Ŵind', 'Kirsis Wind', 'office affluent']) {
      const { text } = await drawn(snapshot({ partner: { ...partner, name } }));
      expect(text.split(name).length - 1).toBe(1);
    }
  });

  test('differs by its number alone in its identifier too', async () => {
    const id = async (document: DocumentSnapshot) =>
      /\/ID \[<(\w+)>/.exec((await renderDocument(document)).toString('latin1'))?.[1];
    expect(await id(snapshot())).toBe(await id(snapshot()));
    expect(await id(snapshot())).not.toBe(await id(snapshot({ number: 'INV-2026-000043' })));
  });

  describe('compiled, in another process', () => {
    // Below the package, so that the compiled program finds its package's root and its libraries as it does in dist/.
    const folder = resolve('node_modules/.cache', `draw-test-${process.pid}`);

    beforeAll(() => {
      mkdirSync(folder, { recursive: true });
      writeFileSync(
        join(folder, 'tsconfig.json'),
        JSON.stringify({
          extends: resolve('tsconfig.json'),
          compilerOptions: {
            ...{ rootDir: resolve('.'), outDir: folder, sourceMap: false, noCheck: true },
            paths: { '#*': [resolve('src/*.ts')] },
          },
          include: [resolve('src/documents/pdf/render.ts'), resolve('src/documents/pdf/*.d.ts')],
        }),
      );
      execFileSync(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', folder]);
      const described = JSON.parse(readFileSync('package.json', 'utf8')) as object;
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...described, imports: { '#*': './src/*.js' } }));
      cpSync(resolve('templates'), join(folder, 'templates'), { recursive: true });
      writeFileSync(
        join(folder, 'child.js'),
        `import { createHash } from 'node:crypto';
         import { readFileSync } from 'node:fs';
         import { renderDocument } from './src/documents/pdf/render.js';
         for (const snapshot of JSON.parse(readFileSync(0, 'utf8'))) {
           console.log(createHash('sha256').update(await renderDocument(snapshot)).digest('hex'));
         }`,
      );
    }, 60_000);

    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    test.each([
      ['Pacific/Kiritimati', 'de_DE.UTF-8', 'in order'],
      ['Pacific/Pago_Pago', 'C', 'backwards'],
    ])(
      'gives the same bytes in the time zone %s and the language %s, drawn %s',
      (TZ, LANG, order) => {
        const inOrder = <T>(each: readonly T[]) => (order === 'backwards' ? [...each].reverse() : [...each]);
        const output = execFileSync(process.execPath, [join(folder, 'child.js')], {
          input: JSON.stringify(inOrder(snapshots)),
          encoding: 'utf8',
          env: { TZ, LANG, LC_ALL: LANG },
        });
        expect(inOrder(output.trim().split('\n'))).toEqual(first);
      },
      60_000,
    );
  });
});
