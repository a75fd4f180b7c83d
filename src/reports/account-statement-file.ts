import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { fontsFor } from '#documents/printable';
import { HowToPay, readHowToPay } from './account-payment.ts';
import { AccountStatement } from './account-statement.ts';
import { renderAccountStatement, textsOfStatement } from './account-statement-pdf.ts';

/**
 * Returns the PDF of a partner's account statement, and the payment methods that it shows. Refusal:
 * characters_unprintable.
 */
export async function pdfOfStatement(
  tx: Transaction,
  { environment, settings }: Readonly<{ environment: Environment; settings: Settings }>,
  statement: AccountStatement,
): Promise<Readonly<{ pdf: Buffer; pay: HowToPay }>> {
  const pay = await readHowToPay(tx, settings, statement);
  const request = { statement, pay, issuer: settings.issuer, sandbox: environment.name === 'sandbox' };
  const fonts = fontsFor(environment, 'The account statement', textsOfStatement(request));
  return { pdf: await renderAccountStatement({ ...request, fonts }), pay };
}
