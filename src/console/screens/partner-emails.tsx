import type { Transaction } from '../../database/transaction.ts';
import { emails } from '../../lists/emails.ts';
import type { PartnerView as Partner } from '../../partners/partners.sql.ts';
import { type ListContext, ListDownloads, ListPage, type ListView, readList } from '../list.tsx';
import type { Screen, Seer } from '../parts.ts';
import type { Visit } from '../route.ts';
import { partnerFrame, readPartnerInScope } from './partner.tsx';

type PartnerEmailsView = Readonly<{
  partner: Partner;
  view: ListView;
}>;

export async function readPartnerEmails(
  tx: Transaction,
  partnerId: string,
  { query, ...seen }: ListContext & Pick<Visit, 'query'>,
): Promise<PartnerEmailsView> {
  const partner = await readPartnerInScope(tx, partnerId, seen.scope);
  return { partner, view: await readList(tx, emails, query, { ...seen, scope: [partnerId] }) };
}

export function partnerEmailsScreen({ partner, view }: PartnerEmailsView, { user }: { user: Seer }): Screen {
  const { frame, path, menu } = partnerFrame(partner, '/emails');
  return {
    ...frame,
    actions: <ListDownloads view={view} path={path} />,
    content: (
      <>
        {menu}
        <ListPage view={view} path={path} user={user} />
      </>
    ),
  };
}
