import { FunctionComponent } from 'preact';
import { List } from '#lists/list';
import { Seer } from './action-link.tsx';
import { ListDownloads, ListPage, listTarget, readList, readListSheet } from './list.tsx';
import { Place } from './menu.ts';
import { Access, Routes } from './route.ts';

type Page = Readonly<{
  list: List;
  place: Place;
  title: string;
  lead?: string | ((question: Readonly<Record<string, string>>) => string);
  /** Beside the title. */
  Actions?: FunctionComponent<{ user: Seer }>;
  /** Its own tab in its section, by default. */
  tab?: string;
}>;

export function addList({ screen, sheets }: Routes, path: string, page: Page): void {
  const { list, Actions, lead, ...frame } = page;
  const { ofLedger, ofPeriod, ticks } = list;
  const access: Access = {
    ...{ role: 'viewer', scope: ofLedger ? 'ledger' : 'partners', ofPeriod },
    repeats: ticks !== undefined,
  };
  const href = `/console${path}`;
  screen(
    path,
    access,
    async (tx, { query, ...seen }) => listTarget(list, seen.asked) ?? (await readList(tx, list, query, seen)),
    (view, { user }) =>
      typeof view === 'string'
        ? { to: view }
        : {
            ...{ tab: href, ...frame, lead: typeof lead === 'function' ? lead(view.question) : lead },
            actions: (
              <>
                {Actions && <Actions user={user} />}
                <ListDownloads view={view} path={href} />
              </>
            ),
            content: <ListPage view={view} path={href} user={user} />,
          },
  );
  sheets(path, access, (tx, { query, ...seen }) => readListSheet(tx, list, query, seen));
}
