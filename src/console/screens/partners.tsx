/** What is done about partners. */
import { ActionLink, MoreActions, type Seer } from '../action-link.tsx';

export const PartnerActions = ({ user }: { user: Seer }) => (
  <>
    <ActionLink user={user} action="partner.import" partner={null}>
      Create and change partners
    </ActionLink>
    <MoreActions
      user={user}
      actions={[
        { action: 'opening.import', partner: null, name: 'Carry over open items of the system before' },
        { action: 'opening.reverse', partner: null, name: 'Reverse what was carried over' },
      ]}
    />
  </>
);
