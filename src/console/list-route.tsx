import type { FunctionComponent } from 'preact';
import type { List } from '../lists/list.ts';
import type { Seer } from './action-link.tsx';
import { ListDownloads, ListPage, readList, readListSheet } from './list.tsx';
import type { Place } from './menu.ts';
import type { Routes } from './route.ts';

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
  const { ofLedger, ofPeriod } = list;
  const access = { role: 'viewer', scope: ofLedger ? 'ledger' : 'partners', ofPeriod } as const;
  const href = `/console${path}`;
  screen(
    path,
    access,
    (tx, { query, ...seen }) => readList(tx, list, query, seen),
    (view, { user }) => ({
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
    }),
  );
  sheets(path, access, (tx, { query, ...seen }) => readListSheet(tx, list, query, seen));
}
