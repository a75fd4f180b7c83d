/**
 * Sentences that the command line prints too, as the console says them: a command is the act that it does, and a document's
 * number stays on one line.
 */
import type { ComponentChildren } from 'preact';
import type { Act } from '../acts/act.ts';
import { flagsOf } from '../acts/command.ts';
import { type Field, fieldsOf } from '../acts/fields.ts';
import { ACTS } from '../acts/registry.ts';
import { actHref, mayDo, type Seer, seesAll } from './act-link.tsx';

/** Commands whose words are not the name of their act. */
const ACT_OF_COMMAND: readonly (readonly [command: RegExp, act: string])[] = [
  [/^close(?!.* --dry-run)/, 'month.close'],
  [/^pause/, 'ledger.pause'],
  [/^deliver --retry/, 'delivery.retry'],
  [/^reconcile .*--bill-missing/, 'shares.bill'],
  [/^invoice write-off .*--undo/, 'invoice.write_off_undone'],
  [/^invoice link .*--rotate/, 'invoice.link_rotate'],
  [/^invoice link .*--revoke/, 'invoice.link_revoke'],
];

interface ScreenOfCommand {
  readonly command: RegExp;
  readonly name: string;
  readonly href: string;
  /** Only for those who read the whole ledger. */
  readonly ofAll?: true;
}

/** Commands that read what a screen shows. */
const SCREENS: readonly ScreenOfCommand[] = [
  { command: /^invoice list.*/, name: 'Invoices', href: '/console/invoices' },
  { command: /^invoice show ([A-Z]+-[\d-]+)$/, name: '$1', href: '/console/invoices/$1' },
  { command: /^payment list.*/, name: 'All payments', href: '/console/payments/all' },
  { command: /^partner list.*/, name: 'Partners', href: '/console/partners' },
  { command: /^approval list.*/, name: 'Approvals', href: '/console/approvals' },
  { command: /^work list.*/, name: 'Work queue', href: '/console/queue' },
  { command: /^dispute list.*/, name: 'Disputes', href: '/console/queue?queue=disputes' },
  { command: /^status$/, name: 'Close', href: '/console/close', ofAll: true },
  { command: /^user list.*/, name: 'Users', href: '/console/settings/users', ofAll: true },
  { command: /^client list.*/, name: 'API clients', href: '/console/settings/clients', ofAll: true },
  { command: /^gl list.*/, name: 'General ledger', href: '/console/reports/general-ledger', ofAll: true },
];

/** The act that a command does; undefined for a command that only reads, or that is of the machine. */
function actOf(command: string): Act | undefined {
  const [noun = '', verb = ''] = command.split(' ');
  const name = ACT_OF_COMMAND.find(([pattern]) => pattern.test(command))?.[1];
  return ACTS.get(name ?? `${noun}.${verb.replaceAll('-', '_')}`);
}

/** An option is named as its field, or as the label of it: `--credit` is the field Credit note. */
const fieldOf = (fields: readonly Field[], option: string): Field | undefined =>
  fields.find((field) => flagsOf(field).startsWith(`${option} `) || flagsOf(field) === option) ??
  fields.find(({ label }) => `--${label.toLowerCase().replaceAll(' ', '-')}-`.startsWith(`${option}-`));

const isPlaceholder = (word: string): boolean => /^[A-Z]+$/.test(word);

/** What a command says of its act's input: `[['number', 'INV-2026-000004']]`. Placeholders such as REASON say nothing. */
function inputOf(act: Act, command: string): [name: string, value: string][] {
  const fields = fieldsOf(act.input);
  const [first] = fields;
  const [, subject = ''] =
    new RegExp(`^(?:${act.name === 'month.close' ? '\\S+' : '\\S+ \\S+'}) ([^\\s-]\\S*)`).exec(command) ?? [];
  const options = [...command.matchAll(/(--[a-z][a-z-]*)(?: ([^\s-]\S*))?/g)].flatMap(([, option = '', value]) => {
    const field = fieldOf(fields, option);
    return field === undefined ? [] : [[field.name, field.kind === 'flag' ? 'yes' : (value ?? '')] as [string, string]];
  });
  const subjects: [string, string][] = first === undefined || first.kind === 'file' ? [] : [[first.name, subject]];
  return [...subjects, ...options].filter(([, value]) => value !== '' && !isPlaceholder(value));
}

interface WordsProps {
  readonly children: string;
  readonly user: Seer;
}

export const Words = ({ children: text, user }: WordsProps) => (
  <>
    {text.split(/'(reckoner [a-z][^'\n]*)'/).map((part, at) => {
      if (at % 2 === 1) return <Command user={user} command={part.slice('reckoner '.length)} />;
      return inOneLine(part);
    })}
  </>
);

function Command({ command, user }: { command: string; user: Seer }) {
  const screen = SCREENS.find((each) => each.command.test(command));
  if (screen !== undefined) {
    const name = command.replace(screen.command, screen.name);
    if (screen.ofAll && !seesAll(user)) return `“${name}”`;
    return <a href={command.replace(screen.command, screen.href)}>{name}</a>;
  }
  const act = actOf(command);
  if (act === undefined) return <code>{`reckoner ${command}`}</code>;
  if (!mayDo(user, act.name, null)) return `“${act.title}”`;
  const known = inputOf(act, command);
  const values = (name: string) => known.filter(([each]) => each === name).map(([, value]) => value);
  const input = Object.fromEntries(known.map(([name]) => [name, values(name)]));
  return <a href={actHref(act.name, input)}>{act.title}</a>;
}

const inOneLine = (text: string): ComponentChildren[] =>
  text
    .split(/\b([A-Z]{1,10}-\d{4}-\d{4,})\b/)
    .map((part, at) => (at % 2 === 1 ? <span class="number">{part}</span> : part));
