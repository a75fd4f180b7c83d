/**
 * Fees that a bank deducted from a payment, as stated by finance. The fees are posted to bank charges. Pure. Refusal:
 * bank_fee_not_applicable.
 */
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { isSmallDifference, SmallDifferences } from './small-difference.ts';

type Owing = Readonly<{
  balance: string;
  currency: string;
}>;

/**
 * Returns the document with the largest balance, or the first of several such documents. The fee must leave a part of
 * that balance to be paid.
 */
export const bearerOf = <Document>(documents: readonly Document[], balanceOf: (document: Document) => Amount) =>
  documents.reduce<Document | undefined>(
    (most, each) => (most === undefined || balanceOf(each).minus(balanceOf(most)).isPositive() ? each : most),
    undefined,
  );

export function whoBearsFee<Document extends Owing>(
  { payment_id }: { payment_id: number },
  documents: readonly Document[],
  fee: Amount,
) {
  const balanceOf = ({ balance, currency }: Owing) => Amount.of(balance, currency);
  const bearer = bearerOf(documents, balanceOf);
  if (bearer === undefined) return undefined;
  if (balanceOf(bearer).minus(fee).isPositive()) return bearer;
  const reason = `it is not less than the open ${balanceOf(bearer).forPeople()}. State only the fee that the bank deducted`;
  throw refuse('bank_fee_not_applicable', { payment_id, fee: fee.forPeople(), reason });
}

/**
 * Refuses a fee above the currency's limit for small differences. The percentage limit applies only to unexplained
 * differences.
 */
export function refuseUnfitFee(
  settings: SmallDifferences,
  { paymentId: payment_id, paid, fee, owed }: { paymentId: number; paid: Amount; fee: Amount; owed: Amount },
) {
  const because = (reason: string) => refuse('bank_fee_not_applicable', { payment_id, fee: fee.forPeople(), reason });
  const most = Amount.of(settings[fee.currency] ?? '0', fee.currency);
  if (fee.minus(most).isPositive()) {
    throw because(
      most.isZero()
        ? `"small_difference" in settings.json has no amount for ${fee.currency}. Set the highest fee that a bank may keep`
        : `"small_difference" in settings.json allows at most ${most.forPeople()}. Leave the fee out, and write off the rest`,
    );
  }
  const sum = paid.plus(fee);
  const short = owed.minus(sum);
  if (short.isZero() || isSmallDifference(settings, short, owed)) return;
  const sums = `payment and fee are ${sum.forPeople()}, but ${owed.forPeople()} is open`;
  throw because(
    short.isPositive()
      ? `${sums}. Correct the fee, or leave it out for a partial payment`
      : `${sums}. Leave the fee out, or name the other invoices that the payment pays`,
  );
}
