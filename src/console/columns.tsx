import { DocumentKind } from '#documents/snapshot';
import { OpenItem } from '#reports/open-items.sql';
import { PartnerBalance } from '#reports/partner-balances';
import { daysBetween, plural } from '#values';
import { Chip, Column, Money, PartnerLink, Quiet } from './kit.tsx';

/** A column of amounts, each in its row's currency. `quiet` shows a dash instead of zero. */
export const amountColumn = <Name extends string>(
  heading: string,
  name: Name,
  { quiet = false, ...look }: { quiet?: boolean; signed?: boolean; bare?: boolean } = {},
): Column<Readonly<Record<Name, string>> & { readonly currency: string }> => ({
  heading,
  number: true,
  cell(row) {
    const Shown = quiet ? Quiet : Money;
    return <Shown amount={row[name]} currency={row.currency} {...look} />;
  },
});

export const PARTNER: Column<Readonly<{ partner_id: string; name: string }>> = {
  heading: 'Partner',
  cell: ({ partner_id, name }) => <PartnerLink id={partner_id}>{name}</PartnerLink>,
};

export const BALANCE: Column<
  Readonly<{
    document: DocumentKind;
    balance: string;
    currency: string;
  }>
> = {
  heading: 'Balance',
  number: true,
  cell: ({ document, balance, currency }) => (
    <Money amount={document === 'credit_note' && /[1-9]/.test(balance) ? `-${balance}` : balance} currency={currency} />
  ),
};

export const DISPUTED = amountColumn('Disputed', 'disputed', { quiet: true });

/** What a partner owes and is owed in each currency, without the net. `unapplied` names the payments without invoice. */
export const balanceColumns = (unapplied: string): readonly Column<PartnerBalance>[] => {
  const amount = (heading: string, name: 'open' | 'overdue' | 'credit' | 'unapplied') =>
    amountColumn(heading, name, { quiet: true, bare: true });
  return [
    { heading: 'Currency', cell: ({ currency }) => currency },
    amount('Open invoices', 'open'),
    amount('Overdue', 'overdue'),
    amount('Open credit', 'credit'),
    amount(unapplied, 'unapplied'),
  ];
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
  DISPUTED,
  BALANCE,
];
