/** The pages of the partner's place. Each read is limited to the contact's partner. */

import { readList } from '#console/list';
import { fileOfStatement, readPartnerStatement, sheetOfStatement } from '#console/screens/partner-statement';
import { readAgreedTerms } from '#console/screens/partner-terms';
import { refuse } from '#errors/refusals';
import { Shared } from '#http/shared';
import { invoices } from '#lists/invoices';
import { reversals } from '#lists/reversals';
import { endPartnerSession } from '#partners/sign-in.sql';
import { disputeInvoice, disputeScreen, readDisputable } from './dispute.tsx';
import { documentScreen, FILE_LINKS, readOwnInvoice } from './document.tsx';
import { FILE_ROUTES, openFile } from './files.ts';
import { documentsScreen, openScreen, readOpen, reversalsScreen, statementScreen } from './overview.tsx';
import { cancelPayment, payInvoices, paymentScreen, readPayment } from './pay.tsx';
import { PartnerRoutes, PartnerVisit } from './route.ts';
import { termsScreen } from './terms.tsx';
import { readWire, wireInvoices, wireScreen } from './wire.tsx';

export function addPartnerScreens({ screen, asked, file, form }: PartnerRoutes, shared: Shared) {
  const numberOf = ({ params }: PartnerVisit) => params['number'] ?? '';
  screen('/', (tx, visit) => readOpen(tx, visit), openScreen);
  screen(
    '/documents',
    (tx, { partnerId, today, query, context }) =>
      readList(tx, invoices, query, { scope: [partnerId], period: null, today, context }),
    documentsScreen,
  );
  screen(
    '/reversals',
    (tx, { partnerId, today, query, context }) =>
      readList(tx, reversals, { view: 'all', ...query }, { scope: [partnerId], period: null, today, context }),
    reversalsScreen,
  );
  screen(
    '/statement',
    (tx, { partnerId, query, today }) => readPartnerStatement(tx, partnerId, query, { today, scope: [partnerId] }),
    statementScreen,
    sheetOfStatement,
  );
  file('/statement.pdf', 'files', async (tx, { partnerId, query, today, context }) =>
    fileOfStatement(tx, context, await readPartnerStatement(tx, partnerId, query, { today, scope: [partnerId] })),
  );
  screen('/documents/:number', (tx, visit) => readOwnInvoice(tx, visit, numberOf(visit)), documentScreen);
  for (const { kind, bound } of FILE_ROUTES) {
    file(`/documents/:number/${FILE_LINKS[kind][0]}`, bound, async (tx, visit) =>
      openFile(tx, shared, await readOwnInvoice(tx, visit, numberOf(visit)), kind),
    );
  }
  screen(
    '/documents/:number/dispute',
    async (tx, visit) => {
      const view = await readDisputable(tx, visit, numberOf(visit));
      if (!view.invoice.canDispute) throw refuse('page_unknown', { path: visit.request.url });
      return view;
    },
    (view, visit) => disputeScreen(view, visit),
  );
  form('/documents/:number/dispute', (visit, fields) => disputeInvoice(visit, numberOf(visit), fields));
  const referenceOf = ({ params }: PartnerVisit) => params['reference'] ?? '';
  screen(
    '/terms',
    (tx, { partnerId, context: { settings } }) => readAgreedTerms(tx, partnerId, { scope: [partnerId], settings }),
    termsScreen,
  );
  form('/wires', wireInvoices);
  screen('/wires/:wire', (tx, visit) => readWire(tx, visit, visit.params['wire'] ?? ''), wireScreen);
  form('/payments', payInvoices, 'checkouts');
  asked('/payments/:reference', 'checkouts', (visit) => readPayment(visit, referenceOf(visit)), paymentScreen);
  form('/payments/:reference/cancel', (visit) => cancelPayment(visit, referenceOf(visit)), 'checkouts');
  form('/sign-out', async ({ secret, context: { database } }) => {
    await database.transaction((tx) => endPartnerSession(tx, secret));
    return { to: '/place', signedOut: true };
  });
}
