/** What a document states, as fields in words, to compare two versions of it. The PDF lays out the same facts. */
import { Amount } from '#money';
import { moneyText, monthName, plural } from '#values';
import { partnerAddress } from './document.ts';
import { DocumentRow } from './documents.sql.ts';
import { addressLine } from './present.ts';

/** The fields that a document has, in the order of the page. Numbers and the day of issue are left out. */
export function faceOf(row: DocumentRow): ReadonlyMap<string, string> {
  const money = (amount: string) => moneyText(Amount.of(amount, row.currency).toString(), row.currency);
  const fields: readonly (readonly [string, string | null])[] = [
    ['From', row.issuer.legal_name],
    ['To', row.partner_name],
    ['Address', addressLine(partnerAddress(row), (text) => text)],
    ['Attention', row.contact_name],
    ['Tax number', row.tax_id],
    ['Purchase order', row.purchase_order],
    ['Due on', row.due_on],
    ...row.lines.map(
      ({ policy_name, kind, month, count, invoice_amount }) =>
        [
          `${policy_name}, ${kind.replaceAll('_', ' ')}${month === row.month ? '' : `, ${monthName(month)}`}`,
          `${plural(count, 'row')}, ${money(invoice_amount)}`,
        ] as const,
    ),
    ['Total', money(row.invoice_amount)],
    ...row.taxes.map(({ name, tax }) => [name, money(tax)] as const),
    ...row.credit_notes.map(({ number, amount }) => [`Credit from ${number}`, money(amount)] as const),
    [
      row.document === 'invoice' ? 'Amount due' : 'Amount',
      money(row.document === 'invoice' ? row.amount_due : row.gross),
    ],
    ['Reason', row.reason],
    ['Note', row.legal_note],
  ];
  return new Map(fields.filter((field): field is [string, string] => field[1] !== null && field[1] !== ''));
}
