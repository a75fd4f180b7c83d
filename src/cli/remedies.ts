/** Remedies as commands that can be copied. */
import type { Report } from '../acts/act.ts';
import { commandText } from '../acts/command.ts';
import { type ActName, loadAct } from '../acts/names.ts';
import type { Finding } from '../findings/finding.ts';
import type { Remedy } from '../remedy.ts';

export const commandOf = async ({ action, input }: Remedy): Promise<string> =>
  commandText(await loadAct(action as ActName), input);

/** A sentence and what to do: `INV-1 is on hold. Release it with 'reckoner invoice release INV-1'.` */
export async function withCommands(sentence: string, remedies: readonly Remedy[]): Promise<string> {
  const said = remedies.map(async (each) => `${each.label} with '${await commandOf(each)}'.`);
  return [sentence, ...(await Promise.all(said))].filter((each) => each !== '').join(' ');
}

export const inCommands = (findings: readonly Finding[]): Promise<string[]> =>
  Promise.all(findings.map(({ urgent, remedies }) => withCommands(urgent ?? '', remedies)));

/** What was done, and below it what may be done next. */
export async function inFull({ text, remedies = [] }: Report): Promise<string> {
  return [text, ...(await Promise.all(remedies.map((each) => withCommands('', [each]))))].join('\n');
}
