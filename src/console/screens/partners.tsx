import { ActionLink, MoreActions, Seer } from '#console/action-link';

export const PartnerActions = ({ user }: { user: Seer }) => (
  <>
    <ActionLink user={user} action="partner.change" partner={null} tone="main">
      Add a partner
    </ActionLink>
    <a class="button" href="/console/feeds">
      Feeds
    </a>
    <MoreActions
      user={user}
      actions={[
        { action: 'partner.import', partner: null, name: 'Import partners from a file' },
        { action: 'opening.import', partner: null, name: 'Import open items from the previous system' },
        { action: 'opening.reverse', partner: null, name: 'Reverse items that were carried over' },
      ]}
    />
  </>
);

export const StateFeed = ({ user }: { user: Seer }) => (
  <ActionLink user={user} action="feed.state" partner={null}>
    State totals
  </ActionLink>
);
