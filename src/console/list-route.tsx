/** The routes of a list: its page, and the same rows as CSV and XLSX. */
import type { FunctionComponent } from 'preact';
import type { List } from '../lists/list.ts';
import type { Seer } from './act-link.tsx';
import { ListDownloads, ListPage, readList, readListSheet } from './list.tsx';
import type { Place } from './page.tsx';
import type { Routes } from './route.ts';

interface Page {
  readonly list: List;
  readonly place: Place;
  readonly title: string;
  /** Beside the title. */
  readonly Acts?: FunctionComponent<{ user: Seer }>;
  /** Between the title and the filters. */
  readonly Above?: FunctionComponent;
}

export function addList({ screen, sheets }: Routes, path: string, { list, place, title, Acts, Above }: Page): void {
  const access = { role: 'viewer', scope: 'partners' } as const;
  const href = `/console${path}`;
  screen(
    path,
    access,
    (tx, { query, ...seen }) => readList(tx, list, query, seen),
    (view, { user }) => ({
      ...{ place, title },
      acts: (
        <>
          {Acts && <Acts user={user} />}
          <ListDownloads view={view} path={href} />
        </>
      ),
      content: (
        <>
          {Above && <Above />}
          <ListPage view={view} path={href} user={user} />
        </>
      ),
    }),
  );
  sheets(path, access, (tx, { query, ...seen }) => readListSheet(tx, list, query, seen));
}
