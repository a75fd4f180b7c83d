/** Remedies as links to the acts, for those who may do them. */
import type { Remedy } from '../remedy.ts';
import { ActLink, type Seer, type Whose } from './act-link.tsx';

export const Remedies = ({
  remedies,
  user,
  partner,
  tone,
}: {
  remedies: readonly Remedy[];
  user: Seer;
  partner: Whose;
  tone?: 'small';
}) =>
  remedies.map(({ label, action, input }) => (
    <ActLink user={user} act={action} partner={partner} input={input} tone={tone}>
      {label}
    </ActLink>
  ));
