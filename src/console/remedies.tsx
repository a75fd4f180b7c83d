/** Remedies as links, if the user may follow them. A command that no page replaces is for the terminal alone. */
import { Remedy } from '#remedy';
import { ActionLink, AffectedPartners, Seer, seesAll } from './action-link.tsx';

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
  const { page, ofAll } = remedy;
  if (page === undefined || (ofAll === true && !seesAll(user))) return null;
  return (
    <a class={tone === undefined ? 'button' : `button ${tone}`} href={page}>
      {label}
    </a>
  );
}
