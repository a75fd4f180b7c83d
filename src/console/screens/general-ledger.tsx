import { ActionLink, Seer } from '#console/parts';

export const ExportMonth = ({ user }: { user: Seer }) => (
  <>
    <ActionLink user={user} action="gl.export" partner={null} tone="main">
      Export a month
    </ActionLink>
    <ActionLink user={user} action="settings.adopt" partner={null} input={{ section: 'accounts', edit: 'yes' }}>
      Accounts
    </ActionLink>
    <a class="button" href="/console/reports/general-ledger/entries">
      Entries
    </a>
  </>
);
