/** Remedies as commands that can be copied. */
import type { Report } from '../acts/act.ts';
import { commandText } from '../acts/command.ts';
import { type ActName, loadAct } from '../acts/names.ts';
import type { Finding } from '../findings/finding.ts';
import type { Remedy } from '../remedy.ts';

export async function commandOf(remedy: Remedy): Promise<string> {
  if ('command' in remedy) return `reckoner ${remedy.command}`;
  return commandText(await loadAct(remedy.action as ActName), remedy.input);
}

/** As --json has them: each with its command. */
export const remediesJson = (remedies: readonly Remedy[]) =>
  Promise.all(
    remedies.map(async (each) => ({
      label: each.label,
      ...(each.when !== undefined && { when: each.when }),
      ...('action' in each && { action: each.action, input: each.input }),
      command: await commandOf(each),
    })),
  );

/** A sentence and what to do: `INV-1 is on hold. Release it with 'reckoner invoice release INV-1'.` */
export async function withCommands(sentence: string, remedies: readonly Remedy[]): Promise<string> {
  const said = remedies.map(async (each) => {
    const when = each.when === undefined ? '' : ` ${each.when}`;
    return `${each.label} with '${await commandOf(each)}'${when}.`;
  });
  return [sentence, ...(await Promise.all(said))].filter((each) => each !== '').join(' ');
}

export const inCommands = (findings: readonly Finding[]): Promise<string[]> =>
  Promise.all(findings.map(({ urgent, remedies }) => withCommands(urgent ?? '', remedies)));

/** What was done, and below it what may be done next. */
export async function inFull({ text, remedies = [] }: Report): Promise<string> {
  return [text, ...(await Promise.all(remedies.map((each) => withCommands('', [each]))))].join('\n');
}
