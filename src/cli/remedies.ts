/** Sentences with remedies, written as commands to copy. */
import type { Report } from '../actions/action.ts';
import { commandOf } from '../actions/remedies.ts';
import type { Finding } from '../findings/finding.ts';
import type { Remedy } from '../remedy.ts';

/** A sentence followed by its remedies: `INV-1 is on hold. Release it with 'reckoner invoice release INV-1'.` */
export async function withCommands(sentence: string, remedies: readonly Remedy[]): Promise<string> {
  const said = remedies.map(async (each) => {
    const when = each.when === undefined ? '' : ` ${each.when}`;
    return `${each.label} with '${await commandOf(each)}'${when}.`;
  });
  return [sentence, ...(await Promise.all(said))].filter((each) => each !== '').join(' ');
}

export const inCommands = (findings: readonly Finding[]): Promise<string[]> =>
  Promise.all(findings.map(({ urgent, remedies }) => withCommands(urgent ?? '', remedies)));

/** A report of what was done, followed by possible next steps. */
export async function inFull({ text, remedies = [] }: Report): Promise<string> {
  return [text, ...(await Promise.all(remedies.map((each) => withCommands('', [each]))))].join('\n');
}
