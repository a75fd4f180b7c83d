import { ComponentChildren } from 'preact';
import { ActionContext } from '#actions/action';
import { Blocks } from '#console/blocks';
import { ActionLink, addressOf, DayInput, Downloads, dayAsked, Screen, Seer, Verdict } from '#console/parts';
import { ConsoleFile } from '#console/route';
import { Transaction } from '#database/transaction';
import { lastDay, Month, monthBefore } from '#month';
import { PartnerView as Partner } from '#partners/partners.sql';
import { Scope } from '#people/scope';
import { AccountStatement, activityBlocks, readAccountStatement } from '#reports/account-statement';
import { refuseFutureDay } from '#reports/future-day';
import { statementSheet } from '#reports/sheets';
import { Sheet } from '#sheet';
import { partnerFrame, readPartnerInScope } from './partner.tsx';

type StatementQuestion = Readonly<Partial<Record<'from' | 'as_of', string>>>;

export type PartnerStatementView = Readonly<{
  partner: Partner;
  statement: AccountStatement;
}>;

/** Refusals: partner_unknown, argument_invalid, date_in_future. */
export async function readPartnerStatement(
  tx: Transaction,
  partnerId: string,
  asked: StatementQuestion,
  { today, scope }: { today: string; scope: Scope },
): Promise<PartnerStatementView> {
  const [from, asOf] = [dayAsked('from', asked.from), dayAsked('as_of', asked.as_of)];
  const partner = await readPartnerInScope(tx, partnerId, scope);
  await refuseFutureDay(tx, asOf, today);
  return { partner, statement: await readAccountStatement(tx, { partnerId, from, asOf, today }) };
}

/** The PDF as it would be e-mailed. The renderer is loaded on demand, because that takes 0.25 seconds. */
export async function fileOfStatement(
  tx: Transaction,
  context: ActionContext,
  { partner, statement }: PartnerStatementView,
): Promise<ConsoleFile> {
  const { pdfOfStatement } = await import('#reports/account-statement-file');
  const { pdf: content } = await pdfOfStatement(tx, context, statement);
  const name = `account-statement-${partner.partner_id}-${statement.as_of}.pdf`;
  return { type: 'application/pdf', name, content, download: true };
}

export const sheetOfStatement = ({ statement }: PartnerStatementView): Sheet => statementSheet(statement);

function monthOf({ from, as_of }: AccountStatement) {
  const month = from.slice(0, 7) as Month;
  return from === `${month}-01` && as_of === lastDay(month) ? month : undefined;
}

/** A statement can be e-mailed only for a whole month. For other periods, the form asks for the month. */
function Send({ partner, statement, user }: PartnerStatementView & { user: Seer }) {
  const month = monthOf(statement);
  const { partner_id: partnerId } = partner;
  return (
    <ActionLink
      user={user}
      action="statement.send"
      partner={partnerId}
      input={{ partnerId, ...(month !== undefined && { month }) }}
    >
      {month === undefined ? 'E-mail a month’s statement' : `E-mail the statement of ${month}`}
    </ActionLink>
  );
}

export function partnerStatementScreen({ partner, statement }: PartnerStatementView, { user }: { user: Seer }): Screen {
  const { ties, preliminary } = statement;
  const { frame, path } = partnerFrame(partner, '/statement');
  return {
    ...frame,
    actions: (
      <>
        <Send partner={partner} statement={statement} user={user} />
        <StatementFiles path={path} statement={statement} />
      </>
    ),
    content: (
      <>
        <StatementPeriod path={path} statement={statement}>
          <Verdict good={ties} preliminary={preliminary}>
            {ties ? 'equals the open items' : 'differs from the open items'}
          </Verdict>
        </StatementPeriod>
        <div class="stack">
          <Accounts statement={statement} />
        </div>
      </>
    ),
  };
}

type PeriodProps = Readonly<{
  path: string;
  statement: AccountStatement;
}>;

export const StatementFiles = ({ path, statement: { from, as_of } }: PeriodProps) => (
  <>
    <a class="button" href={addressOf(`${path}.pdf`, { from, as_of })} hx-boost="false" download>
      PDF
    </a>
    <Downloads path={path} question={{ from, as_of }} />
  </>
);

export function StatementPeriod({
  path,
  statement: { from, as_of },
  children,
}: PeriodProps & { children: ComponentChildren }) {
  const before = monthBefore(from.slice(0, 7) as Month);
  return (
    <>
      <p class="printed">{`Account statement, ${from} to ${as_of}`}</p>
      <form class="filters" action={path}>
        <DayInput label="From" name="from" value={from} />
        <DayInput label="To" name="as_of" value={as_of} />
        <button type="submit">Show</button>
        <a class="button" href={addressOf(path, { from: `${before}-01`, as_of: lastDay(before) })}>
          {before}
        </a>
        {children}
      </form>
    </>
  );
}

/** `documents`: where the pages of documents are. */
export const Accounts = ({ statement, documents }: { statement: AccountStatement; documents?: string }) => (
  <>
    <Blocks blocks={activityBlocks(statement, documents)} />
    {statement.accounts.length === 0 && <p class="nothing">No activity on this account.</p>}
  </>
);
