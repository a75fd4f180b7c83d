/** The form, preview and confirmation pages of every registered action. */
import { createHash } from 'node:crypto';
import { Action, FormValues } from '#actions/action';
import { monthClose } from '#actions/close';
import { FullReport } from '#actions/consequence';
import { fieldsOf, inputOfForm } from '#actions/fields';
import { glExport } from '#actions/general-ledger';
import { ACTIONS } from '#actions/loaded';
import { OutdatedPreview, previewAction, RunOptions, readNamed, runAction } from '#actions/run';
import { settingsAdopt } from '#actions/settings';
import { SECTION_NAMES, Section } from '#config/settings';
import { Transaction } from '#database/transaction';
import { readRowsNumbered } from '#documents/rows-to-correct.sql';
import { Refusal, refuse } from '#errors/refusals';
import { isInScope, Scope } from '#people/scope';
import { statedByFile, valueInForce } from '#people/settings-in-force';
import { mayDo } from './action-link.tsx';
import { placesOf } from './menu.ts';
import { PageUser } from './page.tsx';
import { readPartnersFor } from './partner-names.tsx';
import { Access, Answer, Routes, Visit } from './route.ts';
import {
  ActionRequest,
  actionAsked,
  actionDone,
  actionForm,
  actionPreview,
  FILLED,
  filesOf,
  monthHref,
} from './screens/action.tsx';
import { approvalHref } from './screens/approvals.tsx';
import { USERS } from './screens/people.tsx';
import { QUEUE } from './screens/queue.tsx';
import { EDIT, editsSection, putSection, withSection } from './section-form.tsx';

export function addActions({ screen, form: sent }: Routes): void {
  for (const action of ACTIONS.values()) {
    const path = `/actions/${action.name}`;
    const { role, otherRole, needsProof: proof } = action;
    const access: Access = { role, otherRole, scope: 'partners', repeats: true, proof };
    screen(
      path,
      access,
      (tx, visit) => formAsked(tx, action, visit),
      (asked) => actionForm(asked),
    );
    const files = filesOf(action);
    sent(path, { ...access, ...(files && { files }) }, (visit, form) => answerTo(action, visit, form));
  }
}

const filledIn = async (
  tx: Transaction,
  action: Action,
  { reader, context }: Pick<Visit, 'reader' | 'context'>,
  asked: URLSearchParams,
) => (mayDo(reader, action.name, null) ? action.filled?.(tx, context, asked) : undefined);

/** A form of a known thing is filled with what is in force. */
async function formAsked(
  tx: Transaction,
  action: Action,
  { asked, context, reader, scope }: Visit,
): Promise<ActionRequest> {
  const filled = await filledIn(tx, action, { reader, context }, asked);
  // What is in force for the whole ledger is shown to those who may read all of it.
  if (editsSection(asked) && scope !== null) {
    throw refuse('role_needed', { login: reader.login, role: action.role, all_partners: true });
  }
  const section = asked.get('section') as Section;
  // A section that no file states can only be entered.
  if (action === settingsAdopt && SECTION_NAMES.includes(section) && statedByFile(context, section) === undefined)
    asked.set(EDIT, 'yes');
  const form = new URLSearchParams(editsSection(asked) ? putSection(asked, valueInForce(context, section)) : asked);
  for (const [name, values] of Object.entries(filled ?? {})) {
    if (!asked.has(name)) for (const value of [values].flat()) form.append(name, value);
  }
  form.set('fixed', [...new Set(asked.keys())].join(' '));
  if (filled !== undefined) form.append(FILLED, digestOfValues(filled));
  return { action, reader, form, ...(await readKnown(tx, action, form, scope)) };
}

/** What the form shows by name: the partners to choose from, and the sales of ledger rows. */
async function readKnown(tx: Transaction, { input }: Action, form: URLSearchParams, scope: Scope) {
  const fields = fieldsOf(input).filter(({ ofSales }) => ofSales);
  const ids = fields.flatMap(({ name }) => form.getAll(name)).filter((each) => /^\d{1,15}$/.test(each));
  const sales = ids.length === 0 ? [] : await readRowsNumbered(tx, { ids: ids.map(Number) });
  return {
    partners: await readPartnersFor(tx, input, scope),
    sales: sales.filter(({ partner_id }) => isInScope(scope, partner_id)),
  };
}

const digestOfValues = (filled: FormValues) => createHash('sha256').update(JSON.stringify(filled)).digest('hex');

/** A form that was filled with values which someone has changed since; undefined if it is up to date. */
async function formFilledAnew(action: Action, visit: Visit, form: URLSearchParams) {
  const seen = form.get(FILLED);
  if (seen === null) return undefined;
  const fixed = new Set(form.get('fixed')?.split(' '));
  const asked = new URLSearchParams([...form].filter(([name]) => fixed.has(name)));
  return visit.context.database.reading(async (tx) => {
    const filled = await filledIn(tx, action, visit, asked);
    const isSame = filled !== undefined && digestOfValues(filled) === seen;
    return isSame ? undefined : formAsked(tx, action, { ...visit, asked });
  });
}

const FORM_OUTDATED = {
  ...{ argument: 'This form', value: '' },
  reason: 'was opened before someone changed what it shows. It has the present values now: enter your change again',
};

/** A refused action shows the form again, with the problem above the entered values. */
async function answerTo(action: Action, visit: Visit, sent: URLSearchParams) {
  const form = withSection(sent);
  const given = inputOfForm(action.input, form, action.forms !== undefined);
  const { database } = visit.context;
  const forecasting = { ...visit.context, forecast: true };
  const asked = { action, reader: visit.reader, form, partners: new Map(), sales: [] };
  // Only a form suggests partners and shows its sales.
  const formAgain = async (refusal?: Refusal) => {
    const known = await database.reading((tx) => readKnown(tx, action, form, visit.scope));
    return actionForm({ ...asked, ...known }, refusal);
  };
  const step = form.get('step');
  if (step === 'edit') return { screen: await formAgain() };
  let input: unknown = given;
  try {
    const anew = step === 'confirm' ? undefined : await formFilledAnew(action, visit, form);
    if (anew !== undefined) {
      return { screen: actionForm(anew, refuse('argument_invalid', FORM_OUTDATED)), status: 409 };
    }
    input = await readNamed(visit.context, action, given);
    if (step !== 'confirm') return { screen: actionPreview(asked, await previewAction(forecasting, action, input)) };
    const report = await confirmed(action, visit, input, form.get('shown') ?? '');
    if (report !== undefined) return doneOf(action, visit, report, input);
    // The effect changed after the user saw it.
    return { screen: actionPreview(asked, await previewAction(forecasting, action, input), true), status: 409 };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    if (thrown.code === 'approval_needed') {
      const request = Number(thrown.facts['request_id']);
      const link = { name: `Request ${request}`, href: approvalHref(request) };
      return { screen: actionAsked(action, visit.reader, thrown, [link, ...linksOf(action, visit.reader, input)]) };
    }
    return { screen: await formAgain(thrown), status: 422 };
  }
}

/** Runs the action. Returns undefined if the action's effect is no longer the effect that was shown. */
async function confirmed(action: Action, visit: Visit, input: unknown, shown: string) {
  try {
    return await runAction(visit.context, action, input, { ...laterOf(action, visit), shown });
  } catch (thrown) {
    if (thrown instanceof OutdatedPreview) return undefined;
    throw thrown;
  }
}

/** A month close leads to the close cockpit, any other action to its report. */
export function doneOf(
  action: Action,
  { reader }: Visit,
  report: FullReport,
  input: unknown,
  links = linksOf(action, reader, input),
): Answer {
  const { month } = input as { readonly month?: unknown };
  if (action.name === monthClose.name && typeof month === 'string') return { to: `/console/close/${month}` };
  return { screen: actionDone(action, reader, report, links) };
}

/** Sends the e-mails of a close after the response, because that takes longer than a browser waits. */
export function laterOf(action: Action, { request }: Visit): Pick<RunOptions, 'later'> {
  if (action.name !== monthClose.name) return {};
  return {
    later: (follow) =>
      void follow().catch((err: unknown) => request.log.error({ err }, 'the work after a month close failed')),
  };
}

/** With more documents than these, the report links them. */
const MOST_LINKS = 3;

function linksOf(action: Action, reader: PageUser, input: unknown) {
  const { number, partnerId, paymentId, month } = input as Readonly<Record<string, unknown>>;
  const documents = [number].flat().filter((each) => typeof each === 'string');
  return [
    ...(documents.length > MOST_LINKS ? [] : documents).map((each) => ({
      name: each,
      href: `/console/invoices/${encodeURIComponent(each)}`,
    })),
    ...(typeof partnerId === 'string'
      ? [{ name: partnerId, href: `/console/partners/${encodeURIComponent(partnerId)}` }]
      : []),
    ...(typeof paymentId === 'number'
      ? [{ name: `Payment ${paymentId}`, href: `/console/payments/${paymentId}` }]
      : []),
    ...(action.name === glExport.name ? [{ name: 'General ledger', href: '/console/reports/general-ledger' }] : []),
    ...(typeof month === 'string' && placesOf(reader).some(({ path }) => path === 'close')
      ? [{ name: month, href: monthHref(action, month) }]
      : []),
    ...(action.name.startsWith('user.') ? [USERS] : []),
    { name: 'Work queue', href: QUEUE },
  ];
}
