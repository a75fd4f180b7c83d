/** What is done about partners. */
import { ActLink, MoreActs, type Seer } from '../act-link.tsx';

export const PartnerActs = ({ user }: { user: Seer }) => (
  <>
    <ActLink user={user} act="partner.import" partner={null}>
      Create and change partners
    </ActLink>
    <MoreActs
      user={user}
      acts={[
        { act: 'opening.import', partner: null, name: 'Carry over open items of the system before' },
        { act: 'opening.reverse', partner: null, name: 'Reverse what was carried over' },
      ]}
    />
  </>
);
