import { Report } from '#actions/action';
import { commandOf } from '#actions/remedies';
import { Finding } from '#findings/finding';
import { Remedy } from '#remedy';

/** Appends remedies to a sentence: `INV-1 is on hold. Release it with 'reckoner invoice release INV-1'.` */
export async function withCommands(sentence: string, remedies: readonly Remedy[]) {
  const said = remedies.map(async (each) => {
    const when = each.when === undefined ? '' : ` ${each.when}`;
    return `${each.label} with '${await commandOf(each)}'${when}.`;
  });
  return [sentence, ...(await Promise.all(said))].filter((each) => each !== '').join(' ');
}

export const inCommands = (findings: readonly Finding[]) =>
  Promise.all(findings.map(({ urgent, remedies }) => withCommands(urgent ?? '', remedies)));

/** The text of a report, followed by possible next steps. */
export async function inFull({ text, remedies = [] }: Report) {
  return [text, ...(await Promise.all(remedies.map((each) => withCommands('', [each]))))].join('\n');
}
