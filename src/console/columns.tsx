import type { DocumentKind } from '../documents/snapshot.ts';
import { daysBetween } from '../month.ts';
import type { OpenItem } from '../reports/open-items.sql.ts';
import { plural } from '../text.ts';
import { Chip, type Column, Money, Quiet } from './kit.tsx';

export const PARTNER: Column<{ readonly partner_id: string; readonly name: string }> = {
  heading: 'Partner',
  cell: ({ partner_id, name }) => (
    <a class="row" href={`/console/partners/${partner_id}`}>
      {name}
    </a>
  ),
};

const BALANCE: Column<{
  readonly document: DocumentKind;
  readonly balance: string;
  readonly currency: string;
}> = {
  heading: 'Balance',
  number: true,
  cell: ({ document, balance, currency }) => (
    <Money amount={document === 'credit_note' && /[1-9]/.test(balance) ? `-${balance}` : balance} currency={currency} />
  ),
};

export const owedColumns = (asOf: string): readonly Column<OpenItem>[] => [
  {
    heading: 'Due',
    cell: ({ due_on }) =>
      due_on === null ? (
        <Chip>credit</Chip>
      ) : daysBetween(due_on, asOf) > 0 ? (
        <>
          {due_on} <Chip tone="bad">{`${plural(daysBetween(due_on, asOf), 'day')} overdue`}</Chip>
        </>
      ) : (
        due_on
      ),
  },
  {
    heading: 'Disputed',
    number: true,
    cell: ({ disputed, currency }) => <Quiet amount={disputed} currency={currency} />,
  },
  BALANCE,
];
