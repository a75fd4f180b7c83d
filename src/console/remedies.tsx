/** Remedies as links, if the user may follow them, and otherwise as commands. */
import type { Remedy } from '../remedy.ts';
import { ActionLink, type AffectedPartners, type Seer, seesAll } from './action-link.tsx';

type RemedyProps = Readonly<{
  user: Seer;
  partner: AffectedPartners;
  tone?: 'small';
}>;

export const Remedies = ({ remedies, ...seen }: RemedyProps & { remedies: readonly Remedy[] }) =>
  remedies.map((remedy) => (
    <>
      <One remedy={remedy} {...seen} />{' '}
    </>
  ));

function One({ remedy, user, partner, tone }: RemedyProps & { remedy: Remedy }) {
  const { label, when } = remedy;
  if ('action' in remedy) {
    return (
      <ActionLink user={user} action={remedy.action} partner={partner} input={remedy.input} tone={tone}>
        {when === undefined ? label : `${label} ${when}`}
      </ActionLink>
    );
  }
  const { command, page, ofAll } = remedy;
  // A page has no use for the help of a command.
  if (command.endsWith('--help')) return null;
  if (page !== undefined && (ofAll !== true || seesAll(user))) {
    return (
      <a class={tone === undefined ? 'button' : `button ${tone}`} href={page}>
        {label}
      </a>
    );
  }
  return page === undefined ? (
    <span class="soft">
      {label}: <code>{`reckoner ${command}`}</code>
    </span>
  ) : null;
}
