import { Amount } from '#money';
import { DocumentRow } from './documents.sql.ts';

/**
 * What settled an invoice besides payments, so that the amount due less these and the payments is the balance. The row's
 * `credited` includes write-offs, bank charges and credit taken back.
 */
export function settledWithoutCash({ currency, status, ...row }: DocumentRow): { label: string; amount: Amount }[] {
  const [credited, writtenOff, charges, takenBack] = [
    ...[row.credited, row.written_off, row.bank_charges],
    // The credit of a void invoice is open again.
    status === 'void' ? '0' : row.credit_taken_back,
  ].map((each) => Amount.of(each, currency)) as [Amount, Amount, Amount, Amount];
  return [
    ...(takenBack.isZero() ? [] : [{ label: 'credit taken back', amount: takenBack }]),
    { label: 'credited', amount: credited.minus(writtenOff).minus(charges).plus(takenBack) },
    ...(writtenOff.isZero() ? [] : [{ label: 'written off', amount: writtenOff }]),
    ...(charges.isZero() ? [] : [{ label: 'bank charges', amount: charges }]),
  ];
}
