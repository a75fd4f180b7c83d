import { createHash } from 'node:crypto';
import { type AddressObject, simpleParser } from 'mailparser';
import { describe, expect, it, vi } from 'vitest';
import { composeMessage, envelopeOf, isOneAddress, type MessageParts } from '../../src/mail/message.ts';

const pdf = Buffer.from(Array.from({ length: 5000 }, (_, index) => index % 256));

const parts: MessageParts = {
  messageId: '<INV-2026-000042.1.5f2c9a@billing.example>',
  date: '2026-11-01T06:00:12.345Z',
  from: { name: 'Fairweather Protection, Inc.', address: 'billing@fairweather.example' },
  replyTo: 'accounts@fairweather.example',
  to: { name: 'Accounts Payable', address: 'ap@partner.example' },
  cc: ['boss@partner.example'],
  content: {
    subject: 'Invoice INV-2026-000042: USD 1,234.56 due 1 December 2026',
    text: 'USD 1,234.56 is due.\n.\nFrom here on: für Straße 東京 😀\n',
    html: '<!doctype html>\n<html lang="en"><body><p>für Straße 東京 😀</p></body></html>\n',
  },
  attachments: [
    { filename: 'INV-2026-000042.pdf', contentType: 'application/pdf', content: pdf },
    {
      filename: 'INV-2026-000042-rows.csv',
      contentType: 'text/csv; charset=utf-8',
      content: Buffer.from('a,b\r\n1,ü\r\n'),
    },
  ],
};

const addresses = (field: AddressObject | AddressObject[] | undefined) =>
  [field ?? []].flat().flatMap(({ value }) => value.map(({ name, address }) => ({ name, address })));

const header = (raw: Buffer, name: string): string | undefined =>
  new RegExp(`^${name}: ((?:.|\r\n[ \t])*)`, 'im').exec(headersOf(raw))?.[1]?.replace(/\r\n[ \t]/g, ' ');

const headersOf = (raw: Buffer): string => raw.toString('latin1').split('\r\n\r\n')[0] ?? '';

describe('the bytes of a message', () => {
  it('are read back by a mail reader as they were meant', async () => {
    const mail = await simpleParser(composeMessage(parts));
    expect(mail.messageId).toBe('<INV-2026-000042.1.5f2c9a@billing.example>');
    expect(mail.date?.toISOString()).toBe('2026-11-01T06:00:12.000Z');
    expect(mail.subject).toBe(parts.content.subject);
    expect(addresses(mail.from)).toEqual([parts.from]);
    expect(addresses(mail.to)).toEqual([parts.to]);
    expect(addresses(mail.cc)).toEqual([{ name: '', address: 'boss@partner.example' }]);
    expect(addresses(mail.replyTo)).toEqual([{ name: '', address: 'accounts@fairweather.example' }]);
    expect(mail.text).toBe(parts.content.text);
    expect(mail.html).toBe(parts.content.html);
    expect(mail.attachments.map(({ filename, contentType }) => [filename, contentType])).toEqual([
      ['INV-2026-000042.pdf', 'application/pdf'],
      ['INV-2026-000042-rows.csv', 'text/csv'],
    ]);
    expect(mail.attachments.map(({ content }) => content.equals(pdf))).toEqual([true, false]);
    expect(mail.attachments[1]?.content.toString()).toBe('a,b\r\n1,ü\r\n');
  });

  it('say that a program wrote them, so that no holiday notice answers', async () => {
    expect(header(composeMessage(parts), 'Auto-Submitted')).toBe('auto-generated');
  });

  it('are plain ASCII in lines ended by CRLF and none too long', async () => {
    const raw = composeMessage({
      ...parts,
      content: { ...parts.content, text: `${'long '.repeat(400)}\r\nbare\rreturn\nand ${'ü'.repeat(2000)}` },
    });
    const text = raw.toString('latin1');
    expect(text).not.toMatch(/[^\r]\n|\r[^\n]|[^\r\n\t -~]/);
    expect(Math.max(...text.split('\r\n').map((line) => line.length))).toBeLessThanOrEqual(998);
    expect(text.endsWith('\r\n')).toBe(true);
  });

  it('are the same each time, whatever the clock says', async () => {
    const first = composeMessage(parts);
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2031-03-04T05:06:07Z') });
    try {
      expect(composeMessage(structuredCloneOf(parts)).equals(first)).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('are the same in every process, and change only together with this number', async () => {
    const sha256 = createHash('sha256').update(composeMessage(parts)).digest('hex');
    expect(sha256).toBe('385d03aeb83c3f37d67ad2d1cac527e4817b4bd3e94b8b65cfe826c438634d36');
  });

  it('have an attachment of any length in lines of at most 76 characters', () => {
    const [attachment] = parts.attachments as [(typeof parts.attachments)[0]];
    for (const length of [...Array(200).keys(), 5000]) {
      const content = pdf.subarray(0, length);
      const raw = composeMessage({ ...parts, attachments: [{ ...attachment, content }] }).toString('latin1');
      const encoded = /base64\r\n(?:[^\r\n]+\r\n)*\r\n([A-Za-z0-9+/=\r\n]*)\r\n--/.exec(raw)?.[1] ?? '';
      expect(Buffer.from(encoded, 'base64').equals(content), `${length} bytes`).toBe(true);
      expect(
        encoded
          .split('\r\n')
          .slice(0, -1)
          .every((line) => line.length === 76),
      ).toBe(true);
      expect((encoded.split('\r\n').at(-1) ?? '').length).toBeLessThanOrEqual(76);
    }
  });

  it('differ in their boundaries from those of any other message', async () => {
    const boundary = (raw: Buffer) => /boundary="(.*)"/.exec(raw.toString('latin1'))?.[1];
    const one = boundary(composeMessage(parts));
    expect(one).toMatch(/^=_reckoner-[0-9a-f]{32}-Part_1$/);
    expect(boundary(composeMessage({ ...parts, messageId: 'other@billing.example' }))).not.toBe(one);
  });

  it('hold a text that imitates a boundary as text', async () => {
    const raw = composeMessage(parts);
    const boundary = /boundary="(.*?)"/.exec(raw.toString('latin1'))?.[1] ?? '';
    const text = `--${boundary}\n--${boundary}--\nstill the text\n`;
    const mail = await simpleParser(composeMessage({ ...parts, content: { ...parts.content, text } }));
    expect(mail.text).toBe(text);
    expect(mail.attachments).toHaveLength(2);
  });

  it('have no answer address and no copies where there are none', async () => {
    const { replyTo: _, ...rest } = parts;
    for (const message of [
      { ...rest, cc: [] },
      { ...parts, replyTo: '', cc: [] },
    ]) {
      const raw = composeMessage(message);
      expect(headersOf(raw)).not.toMatch(/^(reply-to|cc|bcc):/im);
    }
  });

  it('are not composed without a Message-ID or a date', async () => {
    expect(() => composeMessage({ ...parts, messageId: '<a b@c>' })).toThrow("'<a b@c>' is not a Message-ID");
    expect(() => composeMessage({ ...parts, messageId: '<a@b>\r\nBcc: x@y' })).toThrow('is not a Message-ID');
    expect(() => composeMessage({ ...parts, date: 'yesterday' })).toThrow("'yesterday' is not an instant");
  });
});

describe('names in the headers', () => {
  const named = async (name: string) => {
    const raw = composeMessage({
      ...parts,
      from: { ...parts.from, name },
      to: { ...parts.to, name },
      content: { ...parts.content, subject: `Invoice for ${name}` },
    });
    return { raw, mail: await simpleParser(raw) };
  };

  it.each([
    ['a list of addresses', '"a@x, b@y"'],
    ['another address in brackets', 'Eve <eve@evil.example>, Bob <bob@evil.example>'],
    ['commas, quotes and backslashes', 'Smith, "Jo" \\ Sons; (Ltd): x'],
    ['a group', 'everyone: eve@evil.example;'],
    ['markup', '<b>Bold</b> & Sons'],
    ['letters beyond ASCII', 'Zoë Ångström – Łódź'],
    ['another script and pictures', '東京チケット株式会社 🎟️'],
    ['what looks encoded', '=?utf-8?Q?eve=40evil.example=2C?='],
    ['more letters than fit a line', 'Überaus lange Firmenbezeichnung '.repeat(20).trim()],
    ['nothing but a dot', '.'],
  ])('that hold %s stay the name of one recipient', async (_, name) => {
    const { raw, mail } = await named(name);
    const recipients = addresses(mail.to);
    expect(recipients.map(({ address }) => address)).toEqual(['ap@partner.example']);
    expect(addresses(mail.from).map(({ address }) => address)).toEqual(['billing@fairweather.example']);
    if (!name.startsWith('=?')) expect(recipients[0]?.name).toBe(name);
    expect(headersOf(raw)).not.toMatch(/[^\r\n\t -~]/);
  });

  it('cannot add a header by a line break', async () => {
    const { raw, mail } = await named('Eve\r\nBcc: eve@evil.example\r\n\r\nHello');
    expect(addresses(mail.to)).toEqual([{ name: 'Eve Bcc: eve@evil.example Hello', address: 'ap@partner.example' }]);
    expect(headersOf(raw)).not.toMatch(/^bcc:/im);
    expect(mail.subject).toBe('Invoice for Eve Bcc: eve@evil.example Hello');
    expect(mail.text).toBe(parts.content.text);
  });

  it('may hold half a character without harm', async () => {
    const { mail } = await named('broken \ud83d name');
    expect(addresses(mail.to)[0]?.name).toBe('broken \ufffd name');
  });

  it('of files cannot leave their header either', async () => {
    const raw = composeMessage({
      ...parts,
      attachments: [{ filename: 'ä"; x="\r\nBcc: a@b.pdf', contentType: 'application/pdf', content: pdf }],
    });
    const mail = await simpleParser(raw);
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(['ä"; x=" Bcc: a@b.pdf']);
    expect(raw.toString('latin1')).not.toMatch(/^bcc:/im);
  });
});

describe('the envelope', () => {
  it('has the sender, the recipient and the copies, one address each', () => {
    expect(envelopeOf(parts)).toEqual({
      from: 'billing@fairweather.example',
      to: ['ap@partner.example', 'boss@partner.example'],
    });
  });

  it('has nobody twice', async () => {
    const message = { ...parts, cc: ['AP@partner.example', 'x@y.example', 'X@Y.example'] };
    expect(envelopeOf(message).to).toEqual(['ap@partner.example', 'x@y.example']);
    const mail = await simpleParser(composeMessage(message));
    expect(addresses(mail.cc).map(({ address }) => address)).toEqual(['x@y.example']);
  });

  const notOneAddress = [
    '',
    ' ',
    'a@x.example, b@y.example',
    'a@x.example b@y.example',
    'a@x.example;b@y.example',
    'a@x.example\r\nRCPT TO:<b@y.example>',
    'a@x.example\n',
    'Ann <a@x.example>',
    '<a@x.example>',
    '"a@x.example, b"@y.example',
    'a@b@c.example',
    'a@[127.0.0.1]',
    'nobody',
    '@x.example',
    'a@',
    'a@x.example> NOTIFY=NEVER',
    `${'a'.repeat(250)}@x.example`,
    'ä@x.example',
    'a@ü.example',
    'a\0@x.example',
  ];

  it.each(notOneAddress)('refuses %j, which is not exactly one address', async (address) => {
    expect(isOneAddress(address)).toBe(false);
    const refusal = expect.objectContaining({ code: 'argument_invalid' });
    expect(() => envelopeOf({ ...parts, to: { name: '', address } })).toThrow(refusal);
    expect(() => envelopeOf({ ...parts, from: { name: '', address } })).toThrow(refusal);
    expect(() => envelopeOf({ ...parts, cc: [address] })).toThrow(refusal);
    expect(() => composeMessage({ ...parts, to: { name: '', address } })).toThrow(refusal);
    expect(() => composeMessage({ ...parts, from: { name: '', address } })).toThrow(refusal);
    expect(() => composeMessage({ ...parts, cc: [address] })).toThrow(refusal);
    if (address !== '') expect(() => composeMessage({ ...parts, replyTo: address })).toThrow(refusal);
  });

  it('names the address that it refuses on one line', () => {
    expect(() => envelopeOf({ ...parts, cc: ['a@x.example\r\nb@y.example'] })).toThrow(
      "The e-mail address of the copy recipient 'a@x.example b@y.example' is not exactly one address",
    );
  });
});

function structuredCloneOf(message: MessageParts): MessageParts {
  const attachments = message.attachments.map((each) => ({ ...each, content: Buffer.from(each.content) }));
  return { ...structuredClone({ ...message, attachments: [] }), attachments };
}
