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
  lead?: string;
  /** Beside the title. */
  Actions?: FunctionComponent<{ user: Seer }>;
  /** Between the title and the filters. */
  Above?: FunctionComponent<{ user: Seer }>;
}>;

export function addList({ screen, sheets }: Routes, path: string, page: Page): void {
  const { list, place, title, lead, Actions, Above } = page;
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
            ...{ place, title, lead },
            actions: (
              <>
                {Actions && <Actions user={user} />}
                <ListDownloads view={view} path={href} />
              </>
            ),
            content: (
              <>
                {Above && <Above user={user} />}
                <ListPage view={view} path={href} user={user} />
              </>
            ),
          },
  );
  sheets(path, access, (tx, { query, ...seen }) => readListSheet(tx, list, query, seen));
}
