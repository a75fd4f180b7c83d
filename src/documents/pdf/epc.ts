/** The text of a QR code that starts a SEPA credit transfer in a banking app (EPC069-12, version 002). Pure. */
import { sepaIban } from '#config/instructions';
import { DocumentSnapshot } from '#documents/snapshot';
import { Amount } from '#money';

const LONGEST_NAME = 70;
const LARGEST_AMOUNT = '999999999.99';
/** The guideline's limit for the whole text, which fits version 13 of a QR code. */
const MOST_BYTES = 331;

/** Undefined if the document is not paid by a SEPA transfer with a creditor reference. */
export function epcTextOf(snapshot: DocumentSnapshot) {
  const { instructions, currency, amount_due: due, creditor_reference: reference } = snapshot;
  const iban = sepaIban(instructions ?? {}, currency);
  const { wire } = instructions ?? {};
  if (wire === undefined || iban === undefined || !reference) return undefined;
  const amount = Amount.of(due, currency);
  if (!amount.isPositive() || amount.minus(Amount.of(LARGEST_AMOUNT, currency)).isPositive()) return undefined;
  const name = [...wire.account_holder.trim()].slice(0, LONGEST_NAME).join('');
  // '1' is UTF-8, and SCT a credit transfer. Nothing may follow the last field that is filled in.
  const fields = ['BCD', '002', '1', 'SCT', wire.bic ?? '', name, iban, `EUR${amount.toString()}`, '', reference];
  const text = fields.join('\n');
  return Buffer.byteLength(text) > MOST_BYTES ? undefined : text;
}
