import { ListContext, ListDownloads, ListPage, ListView, readList } from '#console/list';
import { Screen, Seer } from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { emails } from '#lists/emails';
import { PartnerView as Partner } from '#partners/partners.sql';
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
  const { frame, path } = partnerFrame(partner, '/emails');
  return {
    ...frame,
    actions: <ListDownloads view={view} path={path} />,
    content: <ListPage view={view} path={path} user={user} />,
  };
}
